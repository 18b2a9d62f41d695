//! Reads `text/event-stream` byte by byte as it comes, within limits, as the WHATWG describes it.

use std::time::Duration;

use super::{WireError, WireLimits};

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
/// No field name that means anything is longer.
const LONGEST_NAME: usize = 5;
/// How much unused room an event may keep; whoever takes it may keep it for long.
const SPARE: usize = 4_096;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The type; empty for the usual `message`.
    pub event: String,
    /// The data; several lines are joined by line feeds.
    pub data: String,
}

impl SseEvent {
    /// Whether it is of the type that carries messages.
    pub fn is_message(&self) -> bool {
        self.event.is_empty() || self.event == "message"
    }
}

/// The data of an event longer than this gets all the room it may need at once.
const LONG: usize = 32 << 10;

/// Turns the bytes of one stream into events, however they are cut into pieces.
#[derive(Debug)]
pub struct SseParser {
    data_limit: usize,
    noise_limit: usize,
    place: Place,
    /// How much of a byte order mark was seen at the very start; none once that is settled.
    mark: Option<usize>,
    /// The line feed that belongs to the carriage return before it is still to come.
    skip_line_feed: bool,
    /// The field name so far.
    name: Vec<u8>,
    /// Bytes of this line so far that are no data.
    line_noise: usize,
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    id: Vec<u8>,
    number: Vec<u8>,
    last_event_id: Option<String>,
    pending_id: Option<String>,
    retry: Option<Duration>,
}

/// Where in a line the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Name,
    /// Right after the colon, where one space is dropped.
    Colon(Field),
    Value(Field),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
    /// A comment, or a name that means nothing.
    Other,
}

impl Field {
    fn of(name: &[u8]) -> Self {
        match name {
            b"data" => Self::Data,
            b"event" => Self::Event,
            b"id" => Self::Id,
            b"retry" => Self::Retry,
            _ => Self::Other,
        }
    }
}

impl SseParser {
    /// A parser at the start of a stream. The data of one event may have `message_bytes`, any other line `noise_bytes`.
    pub fn new(limits: &WireLimits) -> Self {
        Self {
            data_limit: limits.message_bytes,
            noise_limit: limits.noise_bytes,
            place: Place::Name,
            mark: Some(0),
            skip_line_feed: false,
            name: Vec::new(),
            line_noise: 0,
            data: Vec::new(),
            has_data: false,
            event: Vec::new(),
            id: Vec::new(),
            number: Vec::new(),
            last_event_id: None,
            pending_id: None,
            retry: None,
        }
    }

    /// The id to resume after, if the stream gave one.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// How many bytes of an event that is not complete are held.
    pub fn held(&self) -> usize {
        self.data.len()
    }

    /// How long the stream wants us to wait before coming back.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes bytes off the front of `input` until an event is complete or none are left. Call it again while it gives
    /// events. After an error the stream is of no use any more.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<SseEvent>, WireError> {
        self.skip_mark(input)?;
        while let Some(&first) = input.first() {
            if std::mem::take(&mut self.skip_line_feed) && first == b'\n' {
                advance(input, 1);
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', input);
            let (line, rest) = input.split_at(end.unwrap_or(input.len()));
            self.part_of_line(line)?;
            *input = rest;
            if end.is_some() {
                self.skip_line_feed = input.first() == Some(&b'\r');
                advance(input, 1);
                if let Some(event) = self.end_of_line()? {
                    return Ok(Some(event));
                }
            }
        }
        Ok(None)
    }

    fn skip_mark(&mut self, input: &mut &[u8]) -> Result<(), WireError> {
        while let (Some(seen), Some(&byte)) = (self.mark, input.first()) {
            match BYTE_ORDER_MARK.get(seen) {
                Some(&expected) if expected == byte => {
                    self.mark = Some(seen + 1);
                    advance(input, 1);
                }
                Some(_) => {
                    self.mark = None;
                    // What only looked like the start of a mark belongs to the first line.
                    self.part_of_line(BYTE_ORDER_MARK.get(..seen).unwrap_or_default())?;
                }
                None => self.mark = None,
            }
        }
        Ok(())
    }

    fn part_of_line(&mut self, mut part: &[u8]) -> Result<(), WireError> {
        while let Some(&first) = part.first() {
            match self.place {
                Place::Name => {
                    let colon = memchr::memchr(b':', part);
                    let (name, rest) = part.split_at(colon.unwrap_or(part.len()));
                    self.noise(name.len())?;
                    // A longer name means nothing, so its rest need not be kept.
                    let room = (LONGEST_NAME + 1).saturating_sub(self.name.len());
                    self.name.extend(name.iter().take(room));
                    part = rest;
                    if colon.is_some() {
                        advance(&mut part, 1);
                        self.start_value()?;
                    }
                }
                Place::Colon(field) => {
                    if first == b' ' {
                        advance(&mut part, 1);
                    }
                    self.place = Place::Value(field);
                }
                Place::Value(field) => {
                    self.value(field, part)?;
                    part = &[];
                }
            }
        }
        Ok(())
    }

    /// The name is complete. A further line of data starts with the line feed that joins it to the one before.
    fn start_value(&mut self) -> Result<(), WireError> {
        let field = Field::of(&self.name);
        self.name.clear();
        match field {
            Field::Data => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.more_data(b"\n")?;
                }
            }
            Field::Event => self.event.clear(),
            Field::Id => self.id.clear(),
            Field::Retry => self.number.clear(),
            Field::Other => {}
        }
        self.place = Place::Colon(field);
        Ok(())
    }

    fn more_data(&mut self, part: &[u8]) -> Result<(), WireError> {
        if self.data.len().saturating_add(part.len()) > self.data_limit {
            return Err(WireError::TooLong { what: "an event", limit: self.data_limit });
        }
        if self.data.len() > LONG {
            // Growing step by step would leave as much behind again; what is not written to costs nothing.
            self.data.reserve_exact(self.data_limit.saturating_sub(self.data.len()));
        }
        self.data.extend_from_slice(part);
        Ok(())
    }

    fn value(&mut self, field: Field, part: &[u8]) -> Result<(), WireError> {
        if field == Field::Data {
            return self.more_data(part);
        }
        self.noise(part.len())?;
        match field {
            Field::Event => self.event.extend_from_slice(part),
            Field::Id => self.id.extend_from_slice(part),
            Field::Retry => self.number.extend_from_slice(part),
            Field::Data | Field::Other => {}
        }
        Ok(())
    }

    fn noise(&mut self, bytes: usize) -> Result<(), WireError> {
        self.line_noise = self.line_noise.saturating_add(bytes);
        if self.line_noise > self.noise_limit {
            return Err(WireError::TooLong { what: "a line that is no data", limit: self.noise_limit });
        }
        Ok(())
    }

    fn end_of_line(&mut self) -> Result<Option<SseEvent>, WireError> {
        let blank = self.place == Place::Name && self.name.is_empty();
        if blank {
            return self.dispatch();
        }
        if self.place == Place::Name {
            // A line without a colon is a field without a value.
            self.start_value()?;
        }
        if let Place::Colon(field) | Place::Value(field) = self.place {
            self.end_of_field(field);
        }
        self.place = Place::Name;
        self.line_noise = 0;
        Ok(None)
    }

    fn end_of_field(&mut self, field: Field) {
        match field {
            Field::Id if !self.id.contains(&0) => {
                self.pending_id = Some(String::from_utf8_lossy(&self.id).into_owned());
            }
            Field::Retry if self.number.iter().all(u8::is_ascii_digit) => {
                let number = std::str::from_utf8(&self.number).unwrap_or_default();
                self.retry = number.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }

    /// A blank line ends the event. Without data it only changes the id to resume after.
    fn dispatch(&mut self) -> Result<Option<SseEvent>, WireError> {
        if let Some(id) = self.pending_id.take() {
            self.last_event_id = Some(id).filter(|id| !id.is_empty());
        }
        let event = std::mem::take(&mut self.event);
        if !std::mem::take(&mut self.has_data) {
            return Ok(None);
        }
        let mut data = String::from_utf8(std::mem::take(&mut self.data)).map_err(|_| WireError::NotText)?;
        if data.capacity() - data.len() > SPARE {
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
