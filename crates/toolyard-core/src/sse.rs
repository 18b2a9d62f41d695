//! Parses `text/event-stream` (server-sent events) incrementally and within limits on memory.
//!
//! [`SseParser::new`] follows the [WHATWG specification](https://html.spec.whatwg.org/multipage/server-sent-events.html).
//! [`SseParser::lenient`] also accepts what OpenAI-compatible servers send: a JSON object in place of a field, the field
//! `error`, whitespace in blank lines and around field names, and invalid UTF-8.

use std::{mem, time::Duration};

const UTF8_BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
/// The longest known field names are `event`, `retry` and `error`.
const MAX_FIELD_NAME_BYTES: usize = 5;
/// Unused capacity that an event may keep.
const MAX_SPARE_BYTES: usize = 4_096;
/// Longer data gets the capacity for the longest event at once.
const LARGE_DATA_BYTES: usize = 32 << 10;

/// Limits on what a parser buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseLimits {
    /// Bytes of one event's data.
    pub max_data_bytes: usize,
    /// Bytes of one line without data: a comment or another field.
    pub max_line_bytes: usize,
}

/// A stream that cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A server or model sent an event that is longer than Toolyard accepts.
    ///
    /// Remedy: request less data from the server, or report the length to its author.
    #[error("an event is longer than {limit} bytes")]
    EventTooLong {
        /// The limit.
        limit: usize,
    },
    /// A server or model sent an event stream with an endless line.
    ///
    /// Remedy: report it to the author of the server; a proxy may also have damaged the stream.
    #[error("a line of an event stream is longer than {limit} bytes")]
    LineTooLong {
        /// The limit.
        limit: usize,
    },
    /// A server or model sent an event stream that is not UTF-8.
    ///
    /// Remedy: report it to the author of the server; a proxy may also have damaged the stream.
    #[error("an event is not UTF-8")]
    NotUtf8,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The type; empty for the default `message`.
    pub event: String,
    /// The data; several lines are joined by line feeds.
    pub data: String,
}

impl SseEvent {
    /// Whether the event has the default type.
    pub fn is_message(&self) -> bool {
        self.event.is_empty() || self.event == "message"
    }
}

/// Turns the bytes of a stream into events, however they are split into chunks.
#[derive(Debug)]
pub struct SseParser {
    limits: SseLimits,
    is_lenient: bool,
    position: LinePosition,
    /// How many bytes of a byte order mark were read so far; `None` after the start of the stream.
    bom_bytes: Option<usize>,
    /// Whether the line feed of a CRLF may follow.
    after_carriage_return: bool,
    field_name: Vec<u8>,
    /// Bytes of the current line that are not data.
    line_bytes: usize,
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    id: Vec<u8>,
    retry_digits: Vec<u8>,
    last_event_id: Option<String>,
    /// The id of the event that is not complete.
    pending_id: Option<String>,
    retry: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    FieldName,
    /// Right after the colon, where one space is ignored.
    AfterColon(Field),
    Value(Field),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
    /// A JSON object in place of a field; the line is an event of its own.
    BareObject,
    /// A comment or an unknown field.
    Ignored,
}

impl SseParser {
    /// A parser at the start of a stream.
    pub fn new(limits: SseLimits) -> Self {
        Self {
            limits,
            is_lenient: false,
            position: LinePosition::FieldName,
            bom_bytes: Some(0),
            after_carriage_return: false,
            field_name: Vec::new(),
            line_bytes: 0,
            data: Vec::new(),
            has_data: false,
            event: Vec::new(),
            id: Vec::new(),
            retry_digits: Vec::new(),
            last_event_id: None,
            pending_id: None,
            retry: None,
        }
    }

    /// A parser that accepts the deviations in the module's documentation.
    pub fn lenient(limits: SseLimits) -> Self {
        Self { is_lenient: true, ..Self::new(limits) }
    }

    /// The event id to resume after.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// The bytes of the event that is not complete.
    pub fn buffered_bytes(&self) -> usize {
        self.data.len()
    }

    /// The delay before reconnecting that the server asked for.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Parses up to the next event and advances `input`. Call it until it returns `None`. After an error the parser
    /// cannot be used any more.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<SseEvent>, SseError> {
        self.skip_bom(input)?;
        while let Some(&first) = input.first() {
            if mem::take(&mut self.after_carriage_return) && first == b'\n' {
                advance(input, 1);
                continue;
            }
            if self.is_lenient && first == b'{' && self.is_at_line_start() {
                if self.has_data {
                    return self.dispatch();
                }
                self.start_bare_object();
            }
            let end = memchr::memchr2(b'\n', b'\r', input);
            let (line, rest) = input.split_at(end.unwrap_or(input.len()));
            self.push_line(line)?;
            *input = rest;
            if end.is_some() {
                self.after_carriage_return = input.first() == Some(&b'\r');
                advance(input, 1);
                if let Some(event) = self.end_line()? {
                    return Ok(Some(event));
                }
            }
        }
        Ok(None)
    }

    /// The last event of a stream that ended without a blank line. The specification drops it.
    pub fn finish(&mut self) -> Result<Option<SseEvent>, SseError> {
        if !self.is_at_line_start()
            && let Some(event) = self.end_line()?
        {
            return Ok(Some(event));
        }
        self.dispatch()
    }

    fn is_at_line_start(&self) -> bool {
        self.position == LinePosition::FieldName && self.line_bytes == 0
    }

    fn start_bare_object(&mut self) {
        self.event.clear();
        self.has_data = true;
        self.position = LinePosition::Value(Field::BareObject);
    }

    fn skip_bom(&mut self, input: &mut &[u8]) -> Result<(), SseError> {
        while let (Some(matched_bytes), Some(&byte)) = (self.bom_bytes, input.first()) {
            match UTF8_BOM.get(matched_bytes) {
                Some(&expected) if expected == byte => {
                    self.bom_bytes = Some(matched_bytes + 1);
                    advance(input, 1);
                }
                Some(_) => {
                    self.bom_bytes = None;
                    // An incomplete byte order mark belongs to the first line.
                    self.push_line(UTF8_BOM.get(..matched_bytes).unwrap_or_default())?;
                }
                None => self.bom_bytes = None,
            }
        }
        Ok(())
    }

    fn push_line(&mut self, mut part: &[u8]) -> Result<(), SseError> {
        while let Some(&first) = part.first() {
            match self.position {
                LinePosition::FieldName => {
                    let colon = memchr::memchr(b':', part);
                    let (name, rest) = part.split_at(colon.unwrap_or(part.len()));
                    self.count_line_bytes(name.len())?;
                    self.push_field_name(name);
                    part = rest;
                    if colon.is_some() {
                        advance(&mut part, 1);
                        self.start_value()?;
                    }
                }
                LinePosition::AfterColon(field) => {
                    if first == b' ' {
                        advance(&mut part, 1);
                    }
                    self.position = LinePosition::Value(field);
                }
                LinePosition::Value(field) => {
                    self.push_value(field, part)?;
                    part = &[];
                }
            }
        }
        Ok(())
    }

    fn push_field_name(&mut self, name: &[u8]) {
        // One byte more than the longest known name is enough to tell that a name is unknown.
        let room = (MAX_FIELD_NAME_BYTES + 1).saturating_sub(self.field_name.len());
        let is_part = |byte: &&u8| !(self.is_lenient && byte.is_ascii_whitespace());
        self.field_name.extend(name.iter().filter(is_part).take(room));
    }

    fn start_value(&mut self) -> Result<(), SseError> {
        let field = match self.field_name.as_slice() {
            b"data" => Field::Data,
            b"error" if self.is_lenient => {
                self.event = b"error".to_vec();
                Field::Data
            }
            b"event" => {
                self.event.clear();
                Field::Event
            }
            b"id" => {
                self.id.clear();
                Field::Id
            }
            b"retry" => {
                self.retry_digits.clear();
                Field::Retry
            }
            _ => Field::Ignored,
        };
        self.field_name.clear();
        if field == Field::Data && mem::replace(&mut self.has_data, true) {
            self.push_data(b"\n")?;
        }
        self.position = LinePosition::AfterColon(field);
        Ok(())
    }

    fn push_data(&mut self, part: &[u8]) -> Result<(), SseError> {
        let limit = self.limits.max_data_bytes;
        if self.data.len().saturating_add(part.len()) > limit {
            return Err(SseError::EventTooLong { limit });
        }
        if self.data.len() > LARGE_DATA_BYTES {
            // Repeated growth would copy the data and fragment memory; capacity that is never written costs no memory.
            self.data.reserve_exact(limit.saturating_sub(self.data.len()));
        }
        self.data.extend_from_slice(part);
        Ok(())
    }

    fn push_value(&mut self, field: Field, part: &[u8]) -> Result<(), SseError> {
        if matches!(field, Field::Data | Field::BareObject) {
            return self.push_data(part);
        }
        self.count_line_bytes(part.len())?;
        match field {
            Field::Event => self.event.extend_from_slice(part),
            Field::Id => self.id.extend_from_slice(part),
            Field::Retry => self.retry_digits.extend_from_slice(part),
            Field::Data | Field::BareObject | Field::Ignored => {}
        }
        Ok(())
    }

    fn count_line_bytes(&mut self, bytes: usize) -> Result<(), SseError> {
        self.line_bytes = self.line_bytes.saturating_add(bytes);
        let limit = self.limits.max_line_bytes;
        if self.line_bytes > limit { Err(SseError::LineTooLong { limit }) } else { Ok(()) }
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, SseError> {
        self.line_bytes = 0;
        if self.position == LinePosition::FieldName {
            if self.field_name.is_empty() {
                return self.dispatch();
            }
            // A line without a colon is a field with an empty value.
            self.start_value()?;
        }
        let position = mem::replace(&mut self.position, LinePosition::FieldName);
        if let LinePosition::AfterColon(field) | LinePosition::Value(field) = position {
            match field {
                Field::BareObject => return self.dispatch(),
                Field::Id if !self.id.contains(&0) => {
                    self.pending_id = Some(String::from_utf8_lossy(&self.id).into_owned());
                }
                Field::Retry if self.retry_digits.iter().all(u8::is_ascii_digit) => {
                    let digits = str::from_utf8(&self.retry_digits).unwrap_or_default();
                    self.retry = digits.parse().ok().map(Duration::from_millis).or(self.retry);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Ends the event. Without data it only changes the id to resume after.
    fn dispatch(&mut self) -> Result<Option<SseEvent>, SseError> {
        if let Some(id) = self.pending_id.take() {
            self.last_event_id = Some(id).filter(|id| !id.is_empty());
        }
        let event = mem::take(&mut self.event);
        if !mem::take(&mut self.has_data) {
            return Ok(None);
        }
        let mut data = match String::from_utf8(mem::take(&mut self.data)) {
            Ok(data) => data,
            Err(error) if self.is_lenient => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Err(_) => return Err(SseError::NotUtf8),
        };
        if data.capacity() - data.len() > MAX_SPARE_BYTES {
            data.shrink_to_fit();
        }
        Ok(Some(SseEvent { event: String::from_utf8_lossy(&event).into_owned(), data }))
    }
}

fn advance(input: &mut &[u8], bytes: usize) {
    *input = input.get(bytes..).unwrap_or_default();
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
