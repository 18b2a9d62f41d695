//! Lines of a server's stdout: messages whole, noise only as much as is worth a log line, nothing beyond its limit.

use std::mem;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{WireError, WireLimits};

/// Bytes read ahead at once, for every connection there is. A line longer than this is read into its own buffer.
const AHEAD: usize = 8 << 10;
/// Bytes read at once into a long line.
const STEP: u64 = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads lines. [`Lines::next`] may be dropped at any moment and called again: nothing is lost.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    message_bytes: usize,
    noise_bytes: usize,
    /// Read already; from `from` on it was not looked at.
    ahead: Vec<u8>,
    from: usize,
    /// The line that is being read.
    line: Vec<u8>,
    kind: Kind,
    ended: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// It begins like JSON.
    Json(String),
    /// It begins like JSON, and the stream ended before the line did. It may be whole or not.
    Unfinished(String),
    /// The beginning of a line that is no message: a log line, a banner, garbage.
    Noise(String),
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The line is not taken. The next one can be read.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The stream broke.
    #[error(transparent)]
    Broken(#[from] std::io::Error),
}

/// What the line that is being read is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Only blanks so far.
    Blank,
    Json,
    /// Kept up to a limit.
    Noise,
    /// The rest of a line that was refused already.
    Refused,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of `reader`.
    pub fn new(reader: R, limits: &WireLimits) -> Self {
        Self {
            reader,
            message_bytes: limits.message_bytes,
            noise_bytes: limits.noise_bytes,
            ahead: Vec::new(),
            from: 0,
            line: Vec::new(),
            kind: Kind::Blank,
            ended: false,
        }
    }

    /// The next line that is not blank; none at the end. A message that is too long is refused as soon as it is, not
    /// when it ends.
    pub async fn next(&mut self) -> Result<Option<Line>, LineError> {
        loop {
            while self.from < self.ahead.len() {
                if let Some(line) = self.take_ahead()? {
                    return Ok(Some(line));
                }
            }
            if self.ended {
                return Ok(self.finish()?.map(unfinished));
            }
            if let Some(line) = self.fill().await? {
                return Ok(Some(line));
            }
        }
    }

    /// Takes what was read ahead, up to the end of the line.
    fn take_ahead(&mut self) -> Result<Option<Line>, WireError> {
        if self.kind == Kind::Blank && self.line.is_empty() {
            // Empty lines by the million cost as little as possible.
            let rest = self.ahead.get(self.from..).unwrap_or_default();
            self.from += rest.iter().take_while(|byte| **byte == b'\n').count();
        }
        let rest = self.ahead.get(self.from..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest);
        let piece = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.from += piece.len() + usize::from(end.is_some());
        let added = add(&mut self.line, &mut self.kind, piece, self.message_bytes, self.noise_bytes);
        if end.is_some() {
            // A line that was refused just now ends here: nothing of it is left to be skipped.
            return added.inspect_err(|_| self.kind = Kind::Blank).and_then(|()| self.finish());
        }
        added.map(|()| None)
    }

    /// Reads once: ahead, or straight into a long line, which is then not copied again.
    async fn fill(&mut self) -> Result<Option<Line>, LineError> {
        if self.kind == Kind::Json && self.line.len() >= AHEAD {
            return self.fill_line().await;
        }
        self.from = 0;
        self.ahead.clear();
        self.ahead.shrink_to(AHEAD);
        self.ahead.reserve_exact(AHEAD);
        self.ended = self.reader.read_buf(&mut self.ahead).await? == 0;
        Ok(None)
    }

    async fn fill_line(&mut self) -> Result<Option<Line>, LineError> {
        make_room(&mut self.line, AHEAD, self.message_bytes);
        let before = self.line.len();
        self.ended = (&mut self.reader).take(STEP).read_buf(&mut self.line).await? == 0;
        let fresh = self.line.get(before..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', fresh) else {
            check_length(&mut self.line, &mut self.kind, self.message_bytes)?;
            return Ok(None);
        };
        self.from = 0;
        self.ahead.clear();
        self.ahead.extend_from_slice(fresh.get(end + 1..).unwrap_or_default());
        self.line.truncate(before + end);
        check_length(&mut self.line, &mut self.kind, self.message_bytes)
            .inspect_err(|_| self.kind = Kind::Blank)?;
        Ok(self.finish()?)
    }

    /// The line that was read, and a fresh beginning.
    fn finish(&mut self) -> Result<Option<Line>, WireError> {
        let mut line = mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        match mem::replace(&mut self.kind, Kind::Blank) {
            Kind::Blank | Kind::Refused => Ok(None),
            Kind::Noise => Ok(Some(Line::Noise(String::from_utf8_lossy(&line).into_owned()))),
            Kind::Json => {
                if line.starts_with(BYTE_ORDER_MARK) {
                    line.drain(..BYTE_ORDER_MARK.len());
                }
                // Whoever keeps the message keeps its buffer.
                if line.capacity() - line.len() > line.len() / 4 {
                    line.shrink_to_fit();
                }
                String::from_utf8(line).map(|line| Some(Line::Json(line))).map_err(|_| WireError::NotText)
            }
        }
    }
}

fn unfinished(line: Line) -> Line {
    match line {
        Line::Json(text) => Line::Unfinished(text),
        other => other,
    }
}

/// Adds a piece to a line, as much of it as is kept.
fn add(
    line: &mut Vec<u8>,
    kind: &mut Kind,
    piece: &[u8],
    message_bytes: usize,
    noise_bytes: usize,
) -> Result<(), WireError> {
    let room = match kind {
        Kind::Refused => return Ok(()),
        Kind::Noise => noise_bytes.saturating_sub(line.len()),
        Kind::Blank | Kind::Json => piece.len(),
    };
    let piece = piece.get(..room.min(piece.len())).unwrap_or_default();
    make_room(line, piece.len(), message_bytes);
    line.extend_from_slice(piece);
    if *kind == Kind::Blank {
        *kind = kind_of(line, noise_bytes);
    }
    match kind {
        Kind::Json => check_length(line, kind, message_bytes),
        Kind::Noise => {
            line.truncate(noise_bytes);
            Ok(())
        }
        Kind::Blank | Kind::Refused => Ok(()),
    }
}

/// What a line is, by its first byte that is no blank.
fn kind_of(line: &[u8], noise_bytes: usize) -> Kind {
    // The carriage return may belong to the end of the line.
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_half_a_mark = line.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(line);
    let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii_start();
    match text.first() {
        Some(b'{' | b'[') => Kind::Json,
        Some(_) if !is_half_a_mark => Kind::Noise,
        _ if line.len() > noise_bytes => Kind::Noise,
        _ => Kind::Blank,
    }
}

/// That a line is not too long; its carriage return does not count. One that is too long is dropped, and the rest of it
/// is going to be skipped.
fn check_length(line: &mut Vec<u8>, kind: &mut Kind, limit: usize) -> Result<(), WireError> {
    let length = line.len() - usize::from(line.last() == Some(&b'\r'));
    if length <= limit {
        return Ok(());
    }
    *line = Vec::new();
    *kind = Kind::Refused;
    Err(WireError::TooLong { what: "a message", limit })
}

/// Makes room for more bytes: twice as much each time, but hardly more than the limit allows.
fn make_room(line: &mut Vec<u8>, more: usize, limit: usize) {
    if line.capacity() - line.len() < more {
        let needed = line.len() + more;
        let comfortable = (line.capacity() * 2).min(limit.saturating_add(AHEAD));
        line.reserve_exact(needed.max(comfortable) - line.len());
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
