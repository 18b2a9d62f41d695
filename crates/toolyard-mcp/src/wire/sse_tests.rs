use proptest::prelude::*;

use super::*;

const SMALL: WireLimits = WireLimits {
    message_bytes: 64,
    depth: 8,
    noise_bytes: 16,
    tools: 1,
    list_bytes: 1,
    pages: 1,
    in_flight: 1,
};

type Read = (Result<Vec<(String, String)>, WireError>, Option<String>, Option<Duration>);

fn read_in<'a>(limits: &WireLimits, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut parser = SseParser::new(limits);
    let mut events = Vec::new();
    let mut outcome = Ok(());
    'pieces: for mut piece in pieces {
        loop {
            match parser.next(&mut piece) {
                Ok(Some(event)) => events.push((event.event, event.data)),
                Ok(None) => break,
                Err(error) => {
                    outcome = Err(error);
                    break 'pieces;
                }
            }
        }
    }
    (outcome.map(|()| events), parser.last_event_id().map(str::to_owned), parser.retry())
}

fn read(text: &str) -> Read {
    read_in(&WireLimits::default(), [text.as_bytes()])
}

fn events(text: &str) -> Vec<(String, String)> {
    read(text).0.unwrap()
}

fn message(data: &str) -> (String, String) {
    (String::new(), data.to_owned())
}

#[test]
fn reads_the_examples_of_the_standard() {
    assert_eq!(events("data: YHOO\ndata: +2\ndata: 10\n\n"), [message("YHOO\n+2\n10")]);
    let (third, id, _) =
        read(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n");
    assert_eq!(third.unwrap(), [message("first event"), message("second event"), message(" third")]);
    assert_eq!(id, None, "an empty id takes the one before away");
    assert_eq!(
        events("data\n\ndata\ndata\n\ndata:"),
        [message(""), message("\n")],
        "an unfinished event is dropped"
    );
    assert_eq!(events("data:test\n\ndata: test\n\n"), [message("test"), message("test")]);
}

#[test]
fn knows_all_line_ends_and_the_byte_order_mark() {
    assert_eq!(
        events("\u{feff}data: a\r\rdata: b\r\n\r\ndata: c\n\n"),
        [message("a"), message("b"), message("c")]
    );
    assert_eq!(events("data: a\u{feff}\n\n"), [message("a\u{feff}")]);
    // Only what looks like a mark in part: the line is no field of ours, and nothing is lost after it.
    let broken: &[u8] = b"\xEF\xBBdata: a\n\ndata: b\n\n";
    assert_eq!(read_in(&WireLimits::default(), [broken]).0.unwrap(), [message("b")]);
}

#[test]
fn keeps_the_type_the_id_and_the_time_to_wait() {
    let (events, id, retry) =
        read("event: endpoint\nid: e-1\nretry: 500\ndata: /m?s=1\n\nid: e-2\n\nretry: soon\nid: a\0b\n\n");
    assert_eq!(events.unwrap(), [("endpoint".to_owned(), "/m?s=1".to_owned())]);
    assert_eq!(id.as_deref(), Some("e-2"), "an id counts without data, one with a NUL does not");
    assert_eq!(retry, Some(Duration::from_millis(500)));
    assert_eq!(read("id: 7\ndata: never finished").1, None, "an id counts once its event is complete");
}

#[test]
fn an_event_type_lasts_for_one_event() {
    let all = events("event: ping\n\ndata: a\n\nevent: ping\ndata: b\n\ndata: c\n\n");
    assert_eq!(all, [message("a"), ("ping".to_owned(), "b".to_owned()), message("c")]);
}

#[test]
fn cuts_off_what_crosses_a_limit() {
    let too_long = |text: &[u8]| match read_in(&SMALL, [text]).0 {
        Err(WireError::TooLong { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(too_long(&[b"data: ".as_slice(), &[b'x'; 65]].concat()), "an event");
    assert_eq!(too_long(&b"data: x\n".repeat(40)), "an event", "many lines count together");
    assert_eq!(too_long(&[b":".as_slice(), &[b'x'; 17]].concat()), "a line that is no data");
    assert_eq!(too_long(&[b'x'; 17]), "a line that is no data");
    assert_eq!(too_long(&[b"event: ".as_slice(), &[b'x'; 17]].concat()), "a line that is no data");
    assert_eq!(too_long(&[b"id: ".as_slice(), &[b'x'; 17]].concat()), "a line that is no data");
    let fits = [b"data: ".as_slice(), &[b'x'; 64], b"\n\n"].concat();
    assert_eq!(read_in(&SMALL, [fits.as_slice()]).0.unwrap(), [message(&"x".repeat(64))]);
    // Endless empty data lines make the event grow too.
    assert_eq!(too_long(&b"data\n".repeat(100)), "an event");
}

#[test]
fn takes_no_text_that_is_none() {
    assert_eq!(read_in(&SMALL, [b"data: \xFF\n\n".as_slice()]).0, Err(WireError::NotText));
}

#[test]
fn a_big_event_is_moved_out_and_not_copied() {
    let mut parser = SseParser::new(&WireLimits::default());
    let text = format!("data: {}", "x".repeat(1 << 20));
    assert_eq!(parser.next(&mut text.as_bytes()), Ok(None));
    let held = parser.data.as_ptr();
    let event = parser.next(&mut b"\n\n".as_slice()).unwrap().unwrap();
    assert_eq!(event.data.as_ptr(), held);
    assert_eq!(parser.data.capacity(), 0, "nothing of it stays behind");
}

/// Pieces from which streams are made: fields, odd lines and every line end.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
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

/// The same by hand from the standard, for whole text without limits.
fn by_the_book(text: &str) -> Vec<(String, String)> {
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
    fn any_cut_gives_the_same_events(stream in hostile(), cuts in proptest::collection::vec(1_usize..9, 1..60)) {
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
        for limits in [WireLimits::default(), SMALL] {
            prop_assert_eq!(read_in(&limits, pieces.iter().copied()), read_in(&limits, [stream.as_slice()]));
        }
    }

    #[test]
    fn text_is_read_as_the_standard_says(stream in hostile()) {
        if let Ok(text) = String::from_utf8(stream) {
            prop_assert_eq!(events(&text), by_the_book(&text));
        }
    }

    #[test]
    fn nothing_held_is_larger_than_the_limits(stream in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let mut parser = SseParser::new(&SMALL);
        for piece in stream.chunks(7) {
            let mut piece = piece;
            while let Ok(Some(_)) = parser.next(&mut piece) {}
            let held = parser.data.len() + parser.event.len() + parser.id.len() + parser.number.len() + parser.name.len();
            prop_assert!(held <= 64 + 3 * 16 + LONGEST_NAME + 1);
        }
    }
}
