//! Streams as servers really write them.

use proptest::prelude::*;

use super::*;

fn read(pieces: &[&[u8]], limit: usize) -> Result<Vec<Part>, TooLong> {
    let limits = StreamLimits { event_bytes: limit, ..StreamLimits::default() };
    let (mut reader, mut parts) = (SseReader::new(limits), Vec::new());
    for piece in pieces {
        reader.push(piece, &mut parts)?;
    }
    reader.finish(&mut parts);
    Ok(parts)
}

fn data(text: &str) -> Part {
    Part::Data(text.to_owned())
}

#[test]
fn every_way_of_ending_a_line_is_understood() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = format!("\u{feff}: hello{end}data: {{\"a\":1}}{end}{end}data:[DONE]{end}{end}");
        let expected = vec![data("{\"a\":1}"), data("[DONE]")];
        assert_eq!(read(&[stream.as_bytes()], 100).unwrap(), expected, "{end:?}");
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes, 100).unwrap(), expected, "{end:?} byte by byte");
    }
}

#[test]
fn several_lines_are_one_event_and_the_last_one_needs_no_blank_line() {
    let parts = read(&[b"event: x\nid: 7\ndata: {\ndata: }\nretry: 3\n\ndata: last"], 100).unwrap();
    assert_eq!(parts, vec![data("{\n}"), data("last")]);
}

#[test]
fn errors_are_found_in_all_the_places_where_servers_put_them() {
    let parts = read(
        &[b"event: error\ndata: {\"message\":\"x\"}\n\n{\"error\":\"y\"}\nerror: {\"message\":\"z\"}\n\n"],
        100,
    );
    let error = |text: &str| Part::Error(text.to_owned());
    assert_eq!(
        parts.unwrap(),
        vec![error("{\"message\":\"x\"}"), data("{\"error\":\"y\"}"), error("{\"message\":\"z\"}")]
    );
}

#[test]
fn floods_end_at_the_limit() {
    let flood = vec![b'x'; 1_000];
    assert_eq!(read(&[b"data: ", &flood], 500), Err(TooLong));
    assert_eq!(read(&[b": ", &flood], 500), Err(TooLong));
    let lines = b"data: 0123456789\n".repeat(100);
    assert_eq!(read(&[&lines], 500), Err(TooLong), "one event of many lines");
    // Comments without end cost nothing and bring nothing.
    assert_eq!(read(&[&b":\n".repeat(100_000)], 500), Ok(Vec::new()));
}

proptest! {
    #[test]
    fn bytes_of_any_kind_do_no_harm_and_pieces_do_not_matter(
        bytes in prop::collection::vec(prop::sample::select(b"data: {}\r\n\n\n:\xff\xc3event".to_vec()), 0..200), at in 0_usize..200,
    ) {
        let (left, right) = bytes.split_at(at.min(bytes.len()));
        prop_assert_eq!(read(&[&bytes], 1_000), read(&[left, right], 1_000));
    }
}
