//! Lines are read in any chunking and between other output, within the limits.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::FutureExt;
use proptest::{collection::vec, prelude::*};
use tokio::io::ReadBuf;

use super::*;

/// A stream that yields its chunks one by one and is pending before each.
struct Chunks {
    chunks: VecDeque<Vec<u8>>,
    is_pending: bool,
    bytes_read: usize,
}

impl Chunks {
    fn of(bytes: &[u8], sizes: &[usize]) -> Self {
        let mut chunks = VecDeque::new();
        let (mut rest, mut sizes) = (bytes, sizes.iter().cycle());
        while !rest.is_empty() {
            let size = sizes.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
            let (chunk, after) = rest.split_at(size);
            chunks.push_back(chunk.to_vec());
            rest = after;
        }
        Self { chunks, is_pending: false, bytes_read: 0 }
    }
}

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_pending = !self.is_pending;
        if self.is_pending {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(mut chunk) = self.chunks.pop_front() {
            let taken = chunk.len().min(buffer.remaining());
            buffer.put_slice(&chunk[..taken]);
            self.bytes_read += taken;
            if taken < chunk.len() {
                self.chunks.push_front(chunk.split_off(taken));
            }
        }
        Poll::Ready(Ok(()))
    }
}

const MAX_MESSAGE_BYTES: usize = 10_000;
const MAX_NOISE_BYTES: usize = 64;

fn limits() -> WireLimits {
    WireLimits { message_bytes: MAX_MESSAGE_BYTES, noise_bytes: MAX_NOISE_BYTES, ..WireLimits::default() }
}

type LineResult = Result<Line, WireError>;

/// All lines, and the peak size of the buffers. Every wait is cancelled once and resumed, as in `select!`.
fn read_all(reader: Chunks, limits: &WireLimits) -> (Vec<LineResult>, usize) {
    let mut lines = LineReader::new(reader, limits);
    let (mut read, mut peak_bytes) = (Vec::new(), 0);
    loop {
        let next = lines.next().now_or_never();
        peak_bytes = peak_bytes.max(lines.line.capacity() + lines.ahead.capacity());
        match next {
            None => {}
            Some(Ok(None)) => return (read, peak_bytes),
            Some(Ok(Some(line))) => read.push(Ok(line)),
            Some(Err(LineError::Wire(error))) => read.push(Err(error)),
            Some(Err(LineError::Io(error))) => panic!("{error}"),
        }
    }
}

fn lines(bytes: &[u8]) -> Vec<LineResult> {
    read_all(Chunks::of(bytes, &[bytes.len().max(1)]), &limits()).0
}

fn json(text: &str) -> LineResult {
    Ok(Line::Json(text.to_owned()))
}

fn noise(text: &str) -> LineResult {
    Ok(Line::Noise(text.to_owned()))
}

#[test]
fn line_ends_of_any_kind_and_blank_lines_are_tolerated() {
    let read = lines(b"{\"a\":1}\n\r\n\n  \t\n [1]\r\n\xef\xbb\xbf{}\n\xef\xbb\xbf\r\n{\"b\"");
    let half = Ok(Line::Unterminated("{\"b\"".to_owned()));
    assert_eq!(read, [json("{\"a\":1}"), json(" [1]"), json("{}"), half]);
    assert_eq!(lines(b""), []);
    assert_eq!(lines(b"{}"), [Ok(Line::Unterminated("{}".to_owned()))]);
}

#[test]
fn half_a_byte_order_mark_is_ignored_before_a_line_ending() {
    for (end, sizes) in [("\n", vec![1]), ("\r\n", vec![1]), ("\r\n", vec![9])] {
        let bytes = [&BYTE_ORDER_MARK[..1], end.as_bytes(), b"{}\n"].concat();
        assert_eq!(read_all(Chunks::of(&bytes, &sizes), &limits()).0, [json("{}")], "{end:?} {sizes:?}");
    }
}

#[test]
fn other_output_is_truncated_and_the_next_message_is_read() {
    let mut bytes = b"Server listening on 8080\n\x1b[31mred\n".to_vec();
    bytes.extend(vec![b'x'; 1 << 20]);
    bytes.extend(b"\n\0\xff\xfe\n{}\n");
    let long = "x".repeat(MAX_NOISE_BYTES);
    assert_eq!(
        lines(&bytes),
        [
            noise("Server listening on 8080"),
            noise("\u{1b}[31mred"),
            noise(&long),
            noise("\0\u{fffd}\u{fffd}"),
            json("{}")
        ]
    );
}

#[test]
fn a_line_may_be_as_long_as_the_limit() {
    let line = |length: usize, end: &str| format!("{{{}{end}", "x".repeat(length - 1));
    for size in [1, 100, 8_191, 8_192, 30_000] {
        let read = |text: String| read_all(Chunks::of(text.as_bytes(), &[size]), &limits()).0;
        let too_long = Err(WireError::TooLong { what: "a message", limit: MAX_MESSAGE_BYTES });
        for end in ["\n", "\r\n"] {
            assert_eq!(
                read(line(MAX_MESSAGE_BYTES, end) + "{}\n"),
                [json(&line(MAX_MESSAGE_BYTES, "")), json("{}")]
            );
            assert_eq!(read(line(MAX_MESSAGE_BYTES + 1, end) + "{}\n"), [too_long.clone(), json("{}")]);
        }
    }
}

#[test]
fn an_endless_message_is_rejected_early_within_bounded_memory() {
    let limits = WireLimits::default();
    let reader = Chunks::of(&vec![b'{'; 64 << 20], &[64 << 10]);
    let mut lines = LineReader::new(reader, &limits);
    let mut peak_bytes = 0;
    let error = loop {
        match lines.next().now_or_never() {
            None => peak_bytes = peak_bytes.max(lines.line.capacity() + lines.ahead.capacity()),
            Some(end) => break end.unwrap_err(),
        }
    };
    assert!(
        matches!(error, LineError::Wire(WireError::TooLong { limit, .. }) if limit == limits.message_bytes)
    );
    assert!(
        lines.reader.bytes_read <= limits.message_bytes + (128 << 10),
        "{} bytes were read",
        lines.reader.bytes_read
    );
    assert!(peak_bytes <= limits.message_bytes + (128 << 10), "{peak_bytes} bytes were buffered");
    assert_eq!(lines.line.capacity(), 0, "the buffer is released");
}

#[test]
fn endless_whitespace_is_not_a_message() {
    let (read, peak_bytes) = read_all(Chunks::of(&vec![b' '; 10 << 20], &[64 << 10]), &limits());
    assert_eq!(read, [noise(&" ".repeat(MAX_NOISE_BYTES))]);
    assert!(peak_bytes < 64 << 10);
}

#[test]
fn a_message_that_is_not_utf8_is_rejected_and_the_next_is_read() {
    assert_eq!(lines(b"{\"a\":\"\xff\"}\n{}\n"), [Err(WireError::NotUtf8), json("{}")]);
    assert_eq!(lines(b"{\"a\":\"\0\"}\n"), [json("{\"a\":\"\0\"}")], "the JSON parser rejects it");
}

#[test]
fn a_long_line_does_not_hold_twice_its_size() {
    let text = format!("{{{}\n", "x".repeat((5 << 20) - 1));
    let (read, _) = read_all(Chunks::of(text.as_bytes(), &[64 << 10]), &WireLimits::default());
    let [Ok(Line::Json(line))] = read.as_slice() else { panic!() };
    assert!(line.len() == 5 << 20 && line.capacity() <= line.len() + line.len() / 4);
}

/// A simple reference implementation over the whole input.
fn expected(bytes: &[u8]) -> Vec<LineResult> {
    let ends_with_newline = bytes.last() == Some(&b'\n');
    let mut pieces: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let last = pieces.pop().filter(|_| !ends_with_newline);
    let classify = |piece: &[u8]| {
        let piece = piece.strip_suffix(b"\r").unwrap_or(piece);
        let text = piece.strip_prefix(BYTE_ORDER_MARK).unwrap_or(piece);
        match text.trim_ascii_start().first() {
            None => None,
            // A partial byte-order mark counts like a whole one.
            Some(_) if BYTE_ORDER_MARK.starts_with(piece) => None,
            Some(b'{' | b'[') if piece.len() > MAX_MESSAGE_BYTES => {
                Some(Err(WireError::TooLong { what: "a message", limit: MAX_MESSAGE_BYTES }))
            }
            Some(b'{' | b'[') => {
                let text = String::from_utf8(text.to_vec()).map_err(|_| WireError::NotUtf8);
                Some(text.map(Line::Json))
            }
            Some(_) => {
                let kept = &piece[..piece.len().min(MAX_NOISE_BYTES)];
                Some(Ok(Line::Noise(String::from_utf8_lossy(kept).into_owned())))
            }
        }
    };
    let whole = pieces.into_iter().filter_map(classify);
    whole.chain(last.and_then(classify).map(|line| line.map(unterminated))).collect()
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let text = "[{\\[][a-z\" ]{0,30}".prop_map(String::into_bytes);
    let message = (0..12_000_usize).prop_map(|length| [b"{".as_slice(), &vec![b'y'; length]].concat());
    let kinds = prop_oneof![
        4 => text,
        1 => message,
        1 => vec(any::<u8>(), 0..20),
        1 => "[ \t]{0,5}".prop_map(String::into_bytes),
        1 => "\u{feff}[{x ][a-z]{0,5}".prop_map(String::into_bytes),
        1 => (0..300_usize).prop_map(|length| vec![b'n'; length]),
    ];
    (kinds, prop::sample::select(vec!["\n", "\r\n"])).prop_map(|(mut line, end)| {
        line.extend(end.bytes());
        line
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn any_chunking_gives_the_same_lines(
        whole in vec(any_line(), 0..8),
        last in vec(any::<u8>(), 0..4),
        sizes in vec(prop_oneof![1..10_usize, 1..20_000_usize], 1..6)
    ) {
        let bytes = [whole.concat(), last].concat();
        let (read, peak_bytes) = read_all(Chunks::of(&bytes, &sizes), &limits());
        prop_assert_eq!(read, expected(&bytes));
        prop_assert!(peak_bytes <= MAX_MESSAGE_BYTES + 2 * (READ_AHEAD_BYTES + 64 * 1_024));
    }
}
