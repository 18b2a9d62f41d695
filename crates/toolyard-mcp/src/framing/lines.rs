//! [`LineReader`]: reads newline-delimited messages. Other output is truncated, and memory stays bounded.

use std::mem;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::WireLimits;
use crate::WireError;

/// Bytes to read ahead per connection. The rest of a longer JSON line is read directly into the buffer of the line.
const READ_AHEAD_BYTES: usize = 8 << 10;
/// Bytes per read into a long line.
const READ_STEP_BYTES: u64 = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads lines. [`LineReader::next`] is cancellation-safe.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    max_message_bytes: usize,
    max_noise_bytes: usize,
    /// Bytes read ahead; those from `ahead_start` on are unprocessed.
    ahead: Vec<u8>,
    ahead_start: usize,
    line: Vec<u8>,
    kind: LineKind,
    ended: bool,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line that starts like JSON.
    Json(String),
    /// A line that starts like JSON, at the end of the stream and without a newline. It may be incomplete.
    Unterminated(String),
    /// The beginning of a line that is not a message, such as log output.
    Noise(String),
}

/// Why a line could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The line is invalid. Reading can continue.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Only whitespace so far.
    Blank,
    Json,
    /// Not a message; kept up to a limit.
    Noise,
    /// The rest of a rejected line.
    Rejected,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads the lines of `reader`.
    pub fn new(reader: R, limits: &WireLimits) -> Self {
        Self {
            reader,
            max_message_bytes: limits.message_bytes,
            max_noise_bytes: limits.noise_bytes,
            ahead: Vec::new(),
            ahead_start: 0,
            line: Vec::new(),
            kind: LineKind::Blank,
            ended: false,
        }
    }

    /// The next line that is not blank; none at the end. A message is rejected as soon as it exceeds the limit.
    pub async fn next(&mut self) -> Result<Option<Line>, LineError> {
        loop {
            while self.ahead_start < self.ahead.len() {
                if let Some(line) = self.process_ahead()? {
                    return Ok(Some(line));
                }
            }
            if self.ended {
                return Ok(self.finish()?.map(unterminated));
            }
            if let Some(line) = self.fill().await? {
                return Ok(Some(line));
            }
        }
    }

    /// Processes bytes read ahead, up to the end of the line.
    fn process_ahead(&mut self) -> Result<Option<Line>, WireError> {
        if self.kind == LineKind::Blank && self.line.is_empty() {
            // Skip empty lines cheaply.
            let rest = self.ahead.get(self.ahead_start..).unwrap_or_default();
            self.ahead_start += rest.iter().take_while(|byte| **byte == b'\n').count();
        }
        let rest = self.ahead.get(self.ahead_start..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest);
        let part = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.ahead_start += part.len() + usize::from(end.is_some());
        let appended =
            append(&mut self.line, &mut self.kind, part, self.max_message_bytes, self.max_noise_bytes);
        if end.is_some() {
            // The rejected line ends here: nothing is left to skip.
            return appended.inspect_err(|_| self.kind = LineKind::Blank).and_then(|()| self.finish());
        }
        appended.map(|()| None)
    }

    /// Reads once: ahead, or directly into a long line to avoid a copy.
    async fn fill(&mut self) -> Result<Option<Line>, LineError> {
        if self.kind == LineKind::Json && self.line.len() >= READ_AHEAD_BYTES {
            return self.fill_line().await;
        }
        self.ahead_start = 0;
        self.ahead.clear();
        self.ahead.shrink_to(READ_AHEAD_BYTES);
        self.ahead.reserve_exact(READ_AHEAD_BYTES);
        self.ended = self.reader.read_buf(&mut self.ahead).await? == 0;
        Ok(None)
    }

    async fn fill_line(&mut self) -> Result<Option<Line>, LineError> {
        grow(&mut self.line, READ_AHEAD_BYTES, self.max_message_bytes);
        let before = self.line.len();
        self.ended = (&mut self.reader).take(READ_STEP_BYTES).read_buf(&mut self.line).await? == 0;
        let new_bytes = self.line.get(before..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', new_bytes) else {
            check_length(&mut self.line, &mut self.kind, self.max_message_bytes)?;
            return Ok(None);
        };
        self.ahead_start = 0;
        self.ahead.clear();
        self.ahead.extend_from_slice(new_bytes.get(end + 1..).unwrap_or_default());
        self.line.truncate(before + end);
        check_length(&mut self.line, &mut self.kind, self.max_message_bytes)
            .inspect_err(|_| self.kind = LineKind::Blank)?;
        Ok(self.finish()?)
    }

    /// Takes the current line and starts the next one.
    fn finish(&mut self) -> Result<Option<Line>, WireError> {
        let mut line = mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        match mem::replace(&mut self.kind, LineKind::Blank) {
            LineKind::Blank | LineKind::Rejected => Ok(None),
            LineKind::Noise => Ok(Some(Line::Noise(String::from_utf8_lossy(&line).into_owned()))),
            LineKind::Json => {
                if line.starts_with(BYTE_ORDER_MARK) {
                    line.drain(..BYTE_ORDER_MARK.len());
                }
                // Messages keep this buffer alive: free unused capacity.
                if line.capacity() - line.len() > line.len() / 4 {
                    line.shrink_to_fit();
                }
                String::from_utf8(line).map(|line| Some(Line::Json(line))).map_err(|_| WireError::NotUtf8)
            }
        }
    }
}

fn unterminated(line: Line) -> Line {
    match line {
        Line::Json(text) => Line::Unterminated(text),
        other => other,
    }
}

/// Appends bytes to a line, as far as its kind allows.
fn append(
    line: &mut Vec<u8>,
    kind: &mut LineKind,
    part: &[u8],
    max_message_bytes: usize,
    max_noise_bytes: usize,
) -> Result<(), WireError> {
    let room = match kind {
        LineKind::Rejected => return Ok(()),
        LineKind::Noise => max_noise_bytes.saturating_sub(line.len()),
        LineKind::Blank | LineKind::Json => part.len(),
    };
    let part = part.get(..room.min(part.len())).unwrap_or_default();
    grow(line, part.len(), max_message_bytes);
    line.extend_from_slice(part);
    if *kind == LineKind::Blank {
        *kind = line_kind(line, max_noise_bytes);
    }
    match kind {
        LineKind::Json => check_length(line, kind, max_message_bytes),
        LineKind::Noise => {
            line.truncate(max_noise_bytes);
            Ok(())
        }
        LineKind::Blank | LineKind::Rejected => Ok(()),
    }
}

/// The kind of a line, by its first byte that is not whitespace. Whitespace beyond `max_noise_bytes` is noise.
fn line_kind(line: &[u8], max_noise_bytes: usize) -> LineKind {
    // Not counted towards the limit: it may belong to the line ending.
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_partial_mark = line.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(line);
    let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii_start();
    match text.first() {
        Some(b'{' | b'[') => LineKind::Json,
        Some(_) if !is_partial_mark => LineKind::Noise,
        _ if line.len() > max_noise_bytes => LineKind::Noise,
        _ => LineKind::Blank,
    }
}

/// Rejects a line beyond the limit, not counting its carriage return, and skips the rest of it.
fn check_length(line: &mut Vec<u8>, kind: &mut LineKind, limit: usize) -> Result<(), WireError> {
    let length = line.len() - usize::from(line.last() == Some(&b'\r'));
    if length <= limit {
        return Ok(());
    }
    *line = Vec::new();
    *kind = LineKind::Rejected;
    Err(WireError::TooLong { what: "a message", limit })
}

/// Grows a line: doubles its capacity, at most to [`READ_AHEAD_BYTES`] beyond the limit.
fn grow(line: &mut Vec<u8>, additional: usize, limit: usize) {
    if line.capacity() - line.len() < additional {
        let needed = line.len() + additional;
        let doubled = (line.capacity() * 2).min(limit.saturating_add(READ_AHEAD_BYTES));
        line.reserve_exact(needed.max(doubled) - line.len());
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
