//! Takes the data out of an event stream as it comes, in whatever pieces, within limits.

use super::config::StreamLimits;

/// What the bytes of a stream bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The data of one event; several lines are joined by line feeds.
    Data(String),
    /// The data of an event that calls itself an error.
    Error(String),
}

/// A stream that goes beyond what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads one stream. Every line counts against its event's limit, comments and unknown fields too.
#[derive(Debug)]
pub(super) struct SseReader {
    limit: usize,
    line: Vec<u8>,
    data: Option<String>,
    is_error: bool,
    after_carriage_return: bool,
    at_start: bool,
}

impl SseReader {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Self {
            limit: limits.event_bytes,
            line: Vec::new(),
            data: None,
            is_error: false,
            after_carriage_return: false,
            at_start: true,
        }
    }

    /// Takes more bytes and gives what they complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], parts: &mut Vec<Part>) -> Result<(), TooLong> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_carriage_return) && first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
            if held.saturating_add(piece.len()) > self.limit {
                return Err(TooLong);
            }
            self.line.extend_from_slice(piece);
            bytes = rest;
            if end.is_some() {
                self.after_carriage_return = bytes.first() == Some(&b'\r');
                bytes = bytes.get(1..).unwrap_or_default();
                self.end_line(parts);
            }
        }
        Ok(())
    }

    /// The stream is over; an event that was not ended by a blank line counts all the same.
    pub(super) fn finish(&mut self, parts: &mut Vec<Part>) {
        if !self.line.is_empty() {
            self.end_line(parts);
        }
        self.dispatch(parts);
    }

    fn end_line(&mut self, parts: &mut Vec<Part>) {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let mut line = line.as_ref();
        if std::mem::take(&mut self.at_start) {
            line = line.trim_start_matches('\u{feff}');
        }
        if line.trim().is_empty() {
            self.dispatch(parts);
        } else if line.starts_with('{') {
            // Some servers drop a bare object into the stream, mostly to say what went wrong.
            self.dispatch(parts);
            parts.push(Part::Data(line.to_owned()));
        } else if let Some((field, value)) = line.split_once(':') {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field.trim() {
                "data" => self.add(value),
                "event" => self.is_error = value.trim().eq_ignore_ascii_case("error"),
                "error" => {
                    self.is_error = true;
                    self.add(value);
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, value: &str) {
        match &mut self.data {
            // Several lines may be one value, or each a value of its own from a server that leaves out the blank lines.
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
    }

    fn dispatch(&mut self, parts: &mut Vec<Part>) {
        let is_error = std::mem::take(&mut self.is_error);
        if let Some(data) = self.data.take() {
            parts.push(if is_error { Part::Error(data) } else { Part::Data(data) });
        }
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
