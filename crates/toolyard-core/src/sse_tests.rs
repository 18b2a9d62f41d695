//! The WHATWG specification, the deviations of lenient parsers, and the limits.

use proptest::prelude::*;

use super::*;

const LIMITS_64_BYTES: SseLimits = SseLimits { max_data_bytes: 64, max_line_bytes: 16 };
const LIMITS_16_MIB: SseLimits = SseLimits { max_data_bytes: 16 << 20, max_line_bytes: 64 << 10 };

/// The events, the last event id and the retry delay.
type ParseOutcome = (Result<Vec<(String, String)>, SseError>, Option<String>, Option<Duration>);

fn parse_chunks<'a>(limits: SseLimits, chunks: impl IntoIterator<Item = &'a [u8]>) -> ParseOutcome {
    let mut parser = SseParser::new(limits);
    let mut events = Vec::new();
    let mut outcome = Ok(());
    'chunks: for mut chunk in chunks {
        loop {
            match parser.next(&mut chunk) {
                Ok(Some(event)) => events.push((event.event, event.data)),
                Ok(None) => break,
                Err(error) => {
                    outcome = Err(error);
                    break 'chunks;
                }
            }
        }
    }
    (outcome.map(|()| events), parser.last_event_id().map(str::to_owned), parser.retry())
}

fn parse(text: &str) -> ParseOutcome {
    parse_chunks(LIMITS_16_MIB, [text.as_bytes()])
}

fn events(text: &str) -> Vec<(String, String)> {
    parse(text).0.unwrap()
}

fn message(data: &str) -> (String, String) {
    (String::new(), data.to_owned())
}

#[test]
fn the_examples_of_the_specification_are_parsed() {
    assert_eq!(events("data: YHOO\ndata: +2\ndata: 10\n\n"), [message("YHOO\n+2\n10")]);
    let (parsed, id, _) =
        parse(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n");
    assert_eq!(parsed.unwrap(), [message("first event"), message("second event"), message(" third")]);
    assert_eq!(id, None, "an empty id clears the previous one");
    assert_eq!(
        events("data\n\ndata\ndata\n\ndata:"),
        [message(""), message("\n")],
        "an unfinished event is dropped"
    );
    assert_eq!(events("data:test\n\ndata: test\n\n"), [message("test"), message("test")]);
}

#[test]
fn all_line_ends_and_the_byte_order_mark_are_recognized() {
    assert_eq!(
        events("\u{feff}data: a\r\rdata: b\r\n\r\ndata: c\n\n"),
        [message("a"), message("b"), message("c")]
    );
    assert_eq!(events("data: a\u{feff}\n\n"), [message("a\u{feff}")]);
    // An incomplete mark makes the first field unknown and affects nothing else.
    let broken: &[u8] = b"\xEF\xBBdata: a\n\ndata: b\n\n";
    assert_eq!(parse_chunks(LIMITS_16_MIB, [broken]).0.unwrap(), [message("b")]);
}

#[test]
fn type_id_and_retry_delay_are_kept() {
    let (events, id, retry) =
        parse("event: endpoint\nid: e-1\nretry: 500\ndata: /m?s=1\n\nid: e-2\n\nretry: soon\nid: a\0b\n\n");
    assert_eq!(events.unwrap(), [("endpoint".to_owned(), "/m?s=1".to_owned())]);
    assert_eq!(id.as_deref(), Some("e-2"), "an id counts without data, one with a NUL does not");
    assert_eq!(retry, Some(Duration::from_millis(500)));
    assert_eq!(parse("id: 7\ndata: never finished").1, None, "an id counts once its event is complete");
}

#[test]
fn an_event_type_lasts_for_one_event() {
    let all = events("event: ping\n\ndata: a\n\nevent: ping\ndata: b\n\ndata: c\n\n");
    assert_eq!(all, [message("a"), ("ping".to_owned(), "b".to_owned()), message("c")]);
}

#[test]
fn events_and_lines_beyond_the_limits_are_errors() {
    let error = |text: &[u8]| parse_chunks(LIMITS_64_BYTES, [text]).0.unwrap_err();
    let event_too_long = SseError::EventTooLong { limit: 64 };
    let line_too_long = SseError::LineTooLong { limit: 16 };
    assert_eq!(error(&[b"data: ".as_slice(), &[b'x'; 65]].concat()), event_too_long);
    assert_eq!(error(&b"data: x\n".repeat(40)), event_too_long, "many lines count together");
    assert_eq!(error(&[b":".as_slice(), &[b'x'; 17]].concat()), line_too_long);
    assert_eq!(error(&[b'x'; 17]), line_too_long);
    assert_eq!(error(&[b"event: ".as_slice(), &[b'x'; 17]].concat()), line_too_long);
    assert_eq!(error(&[b"id: ".as_slice(), &[b'x'; 17]].concat()), line_too_long);
    let fits = [b"data: ".as_slice(), &[b'x'; 64], b"\n\n"].concat();
    assert_eq!(parse_chunks(LIMITS_64_BYTES, [fits.as_slice()]).0.unwrap(), [message(&"x".repeat(64))]);
    // Empty data lines make the event grow as well.
    assert_eq!(error(&b"data\n".repeat(100)), event_too_long);
}

#[test]
fn data_must_be_utf8() {
    assert_eq!(parse_chunks(LIMITS_64_BYTES, [b"data: \xFF\n\n".as_slice()]).0, Err(SseError::NotUtf8));
}

#[test]
fn a_large_event_is_moved_out_and_not_copied() {
    let mut parser = SseParser::new(LIMITS_16_MIB);
    let text = format!("data: {}", "x".repeat(1 << 20));
    assert_eq!(parser.next(&mut text.as_bytes()), Ok(None));
    let buffer = parser.data.as_ptr();
    let event = parser.next(&mut b"\n\n".as_slice()).unwrap().unwrap();
    assert_eq!(event.data.as_ptr(), buffer);
    assert_eq!(parser.data.capacity(), 0, "the buffer is released");
}

fn parse_lenient(chunks: &[&[u8]], max_bytes: usize) -> Result<Vec<(String, String)>, SseError> {
    let limits = SseLimits { max_data_bytes: max_bytes, max_line_bytes: max_bytes };
    let (mut parser, mut events) = (SseParser::lenient(limits), Vec::new());
    for mut chunk in chunks.iter().copied() {
        while let Some(event) = parser.next(&mut chunk)? {
            events.push((event.event, event.data));
        }
    }
    events.extend(parser.finish()?.map(|event| (event.event, event.data)));
    Ok(events)
}

#[test]
fn lenient_parsers_recognize_all_line_ends() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = format!("\u{feff}: hello{end}data: {{\"a\":1}}{end}{end}data:[DONE]{end}{end}");
        let expected = vec![message("{\"a\":1}"), message("[DONE]")];
        assert_eq!(parse_lenient(&[stream.as_bytes()], 100).unwrap(), expected, "{end:?}");
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(parse_lenient(&bytes, 100).unwrap(), expected, "{end:?} byte by byte");
    }
}

#[test]
fn the_last_event_needs_no_blank_line() {
    let events = parse_lenient(&[b"event: x\nid: 7\ndata: {\ndata: }\nretry: 3\n\ndata: last"], 100).unwrap();
    assert_eq!(events, [("x".to_owned(), "{\n}".to_owned()), message("last")]);
}

#[test]
fn errors_are_found_as_events_fields_and_bare_objects() {
    let stream =
        b"event: error\ndata: {\"message\":\"x\"}\n\n{\"error\":\"y\"}\nerror: {\"message\":\"z\"}\n\n";
    let error = |text: &str| ("error".to_owned(), text.to_owned());
    assert_eq!(
        parse_lenient(&[stream], 100).unwrap(),
        [error("{\"message\":\"x\"}"), message("{\"error\":\"y\"}"), error("{\"message\":\"z\"}")]
    );
    // A bare object ends the event before it, and has no type.
    let stream = b"data: a\n{\"b\":1}\n \t\nevent: error\n{\"c\":1}\n data : d \xFF";
    assert_eq!(
        parse_lenient(&[stream], 100).unwrap(),
        [message("a"), message("{\"b\":1}"), message("{\"c\":1}"), message("d \u{fffd}")]
    );
}

#[test]
fn endless_streams_end_at_the_limit() {
    let flood = vec![b'x'; 1_000];
    assert_eq!(parse_lenient(&[b"data: ", &flood], 500), Err(SseError::EventTooLong { limit: 500 }));
    assert_eq!(parse_lenient(&[b": ", &flood], 500), Err(SseError::LineTooLong { limit: 500 }));
    assert_eq!(parse_lenient(&[b"{", &flood], 500), Err(SseError::EventTooLong { limit: 500 }));
    let lines = b"data: 0123456789\n".repeat(100);
    assert_eq!(
        parse_lenient(&[&lines], 500),
        Err(SseError::EventTooLong { limit: 500 }),
        "one event of many lines"
    );
    // Endless comments take no memory.
    assert_eq!(parse_lenient(&[&b":\n".repeat(100_000)], 500), Ok(Vec::new()));
}

/// Streams of fields, odd lines and all line ends.
fn hostile_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data: {\"a\":1}".to_vec()),
        Just(b"data:".to_vec()),
        Just(b"data".to_vec()),
        Just(b"event: message".to_vec()),
        Just(b"id: 4".to_vec()),
        Just(b"id".to_vec()),
        Just(b"retry: 20".to_vec()),
        Just(b": hi".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(vec![0xEF, 0xBB, 0xBF]),
        Just(vec![0xEF, 0xBB]),
        proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// A direct implementation of the specification, for complete text without limits.
fn reference_parse(text: &str) -> Vec<(String, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut event, mut data) = (Vec::new(), String::new(), String::new());
    let Some((complete, _)) = text.rsplit_once('\n') else { return events };
    for line in complete.split('\n') {
        if line.is_empty() {
            if let Some(data) = data.strip_suffix('\n') {
                events.push((event.clone(), data.to_owned()));
            }
            event.clear();
            data.clear();
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => data = data + value + "\n",
            "event" => value.clone_into(&mut event),
            _ => {}
        }
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn chunk_boundaries_do_not_matter(stream in hostile_stream(), cuts in proptest::collection::vec(1_usize..9, 1..60)) {
        let mut pieces = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = later;
        }
        for limits in [LIMITS_16_MIB, LIMITS_64_BYTES] {
            prop_assert_eq!(parse_chunks(limits, pieces.iter().copied()), parse_chunks(limits, [stream.as_slice()]));
        }
    }

    #[test]
    fn text_is_parsed_as_specified(stream in hostile_stream()) {
        if let Ok(text) = String::from_utf8(stream) {
            prop_assert_eq!(events(&text), reference_parse(&text));
        }
    }

    #[test]
    fn buffers_stay_within_the_limits(stream in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let mut parser = SseParser::new(LIMITS_64_BYTES);
        for piece in stream.chunks(7) {
            let mut piece = piece;
            while let Ok(Some(_)) = parser.next(&mut piece) {}
            let buffered = parser.data.len() + parser.event.len() + parser.id.len() + parser.retry_digits.len() + parser.field_name.len();
            prop_assert!(buffered <= 64 + 3 * 16 + MAX_FIELD_NAME_BYTES + 1);
        }
    }

    #[test]
    fn chunk_boundaries_do_not_matter_to_lenient_parsers(
        bytes in prop::collection::vec(prop::sample::select(b"data: {}\r\n\n\n:\xff\xc3event".to_vec()), 0..200), at in 0_usize..200,
    ) {
        let (left, right) = bytes.split_at(at.min(bytes.len()));
        prop_assert_eq!(parse_lenient(&[&bytes], 1_000), parse_lenient(&[left, right], 1_000));
    }
}
