//! The end of a server's stderr, kept in a fixed amount of memory and sanitized when read.

use std::{collections::VecDeque, fmt, iter::Peekable, str::Chars, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::Instant,
};
use toolyard_core::{redact, sanitize};

use crate::server_secrets::ServerSecrets;

const DEFAULT_TAIL_BYTES: usize = 16 << 10;
const READ_CHUNK_BYTES: usize = 4 << 10;
/// Shorter values are too likely to be ordinary words.
const MIN_SECRET_BYTES: usize = 6;
/// Writes within this time count as one.
const WRITE_TIME_RESOLUTION: Duration = Duration::from_millis(100);
/// Times of writing that are remembered. Together they cover more than the age that [`StderrTail::text_since`] is asked for.
const MAX_WRITE_TIMES: usize = 64;
const REDACTED: &str = "[redacted:environment]";

/// The end of a server's stderr, and of lines on stdout that are not messages. Several connections of a server may write
/// to the same tail, one after the other.
pub struct StderrTail {
    limit: usize,
    secrets: Vec<String>,
    server_secrets: Arc<ServerSecrets>,
    buffer: Mutex<TailBuffer>,
}

#[derive(Default)]
struct TailBuffer {
    bytes: VecDeque<u8>,
    /// Whether earlier bytes were dropped.
    is_truncated: bool,
    /// Complete lines ever written.
    lines: u64,
    /// Bytes ever written.
    written: u64,
    /// Times of writing with the bytes written before; the newest last.
    writes: VecDeque<(Instant, u64)>,
}

impl Default for StderrTail {
    fn default() -> Self {
        Self::new(DEFAULT_TAIL_BYTES, Vec::new())
    }
}

impl StderrTail {
    /// Keeps `limit` bytes. Values in `secrets` are redacted on reading.
    pub fn new(limit: usize, mut secrets: Vec<String>) -> Self {
        secrets.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
        // Longest first, because one may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { limit, secrets, server_secrets: Arc::default(), buffer: Mutex::default() }
    }

    /// Redacts the secrets of a server's settings, too.
    #[must_use]
    pub fn with_server_secrets(mut self, server_secrets: Arc<ServerSecrets>) -> Self {
        self.server_secrets = server_secrets;
        self
    }

    /// An empty tail that redacts the same secrets.
    pub(crate) fn empty_copy(&self) -> Self {
        let (secrets, server_secrets) = (self.secrets.clone(), Arc::clone(&self.server_secrets));
        Self { limit: self.limit, secrets, server_secrets, buffer: Mutex::default() }
    }

    /// The text, without control characters and secrets.
    pub fn text(&self) -> String {
        let (bytes, _) = self.snapshot();
        self.sanitized(&bytes).trim().to_owned()
    }

    /// The text that was written at most `age` ago, with the whole of its first line.
    pub(super) fn text_since(&self, age: Duration) -> String {
        let oldest = Instant::now().checked_sub(age);
        let buffer = self.buffer.lock();
        let is_new = |at: &Instant| oldest.is_none_or(|oldest| *at >= oldest);
        let Some((_, before)) = buffer.writes.iter().find(|(at, _)| is_new(at)) else { return String::new() };
        let new_bytes = usize::try_from(buffer.written - before).unwrap_or(usize::MAX);
        let bytes = buffer.whole_lines();
        drop(buffer);
        let (earlier, _) = bytes.split_at(bytes.len().saturating_sub(new_bytes));
        // A line that began earlier may hold the first half of a secret.
        let start = memchr::memrchr(b'\n', earlier).map_or(0, |end| end + 1);
        self.sanitized(bytes.get(start..).unwrap_or_default()).trim().to_owned()
    }

    /// The complete lines after the first `known` ones, as far as they are still kept, and the total number of lines.
    pub fn lines_after(&self, known: u64) -> (u64, Vec<String>) {
        let (bytes, total) = self.snapshot();
        let text = self.sanitized(&bytes);
        let mut lines: Vec<&str> = text.split('\n').collect();
        // The last one is not complete.
        lines.pop();
        let new_lines = usize::try_from(total.saturating_sub(known)).unwrap_or(usize::MAX);
        let skipped = lines.len().saturating_sub(new_lines);
        (total, lines.into_iter().skip(skipped).map(|line| line.trim_end().to_owned()).collect())
    }

    pub(super) fn push_line(&self, line: &str) {
        let mut buffer = self.buffer.lock();
        buffer.push(line.as_bytes(), self.limit);
        buffer.push(b"\n", self.limit);
    }

    /// Appends what `reader` delivers, until it ends.
    pub(super) async fn read_from(&self, mut reader: impl AsyncRead + Unpin) {
        let mut chunk = vec![0_u8; READ_CHUNK_BYTES];
        while let Ok(count @ 1..) = reader.read(&mut chunk).await {
            self.buffer.lock().push(chunk.get(..count).unwrap_or_default(), self.limit);
        }
    }

    /// The bytes from the start of a line, and the total number of lines.
    fn snapshot(&self) -> (Vec<u8>, u64) {
        let buffer = self.buffer.lock();
        (buffer.whole_lines(), buffer.lines)
    }

    fn sanitized(&self, bytes: &[u8]) -> String {
        // Most servers write nothing; do not build the redaction rules for them.
        if bytes.is_empty() {
            return String::new();
        }
        let text = strip_terminal_sequences(&String::from_utf8_lossy(bytes));
        let mut text = sanitize(&text).0.into_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        redact(&self.server_secrets.redact(text)).into_owned()
    }
}

impl TailBuffer {
    /// The bytes from the start of a line.
    fn whole_lines(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.bytes.iter().copied().collect();
        if self.is_truncated {
            // A partial line may be the second half of a secret, which would not be recognized.
            let start = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |end| end + 1);
            bytes.drain(..start);
        }
        bytes
    }

    fn push(&mut self, bytes: &[u8], limit: usize) {
        let now = Instant::now();
        if self
            .writes
            .back()
            .is_none_or(|(at, _)| now.saturating_duration_since(*at) >= WRITE_TIME_RESOLUTION)
        {
            if self.writes.len() == MAX_WRITE_TIMES {
                self.writes.pop_front();
            }
            self.writes.push_back((now, self.written));
        }
        self.written += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(limit);
        self.is_truncated |= excess > 0;
        self.bytes.drain(..excess.min(self.bytes.len()));
        let start = bytes.len().saturating_sub(limit);
        self.bytes.extend(bytes.get(start..).unwrap_or_default());
    }
}

impl fmt::Debug for StderrTail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffer = self.buffer.lock();
        formatter
            .debug_struct("StderrTail")
            .field("bytes", &buffer.bytes.len())
            .field("lines", &buffer.lines)
            .finish()
    }
}

/// The text without terminal escape sequences, titles that they set included, and without carriage returns.
fn strip_terminal_sequences(text: &str) -> String {
    let mut stripped = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(character) = chars.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut chars),
            '\r' => {}
            _ => stripped.push(character),
        }
    }
    stripped
}

/// Skips the rest of a terminal sequence: `ESC [ 31 m`, or `ESC ] … BEL` up to the end of its line.
fn skip_sequence(chars: &mut Peekable<Chars<'_>>) {
    if chars.next_if_eq(&'[').is_some() {
        while chars.next_if(|character| matches!(character, ' '..='?')).is_some() {}
        chars.next_if(|character| matches!(character, '@'..='~'));
    } else if chars.next_if_eq(&']').is_some() {
        while chars.next_if(|character| !matches!(character, '\u{7}' | '\u{1b}' | '\n')).is_some() {}
    }
}

#[cfg(test)]
#[path = "stderr_tail_tests.rs"]
mod tests;
