//! Reads the body of a response within its limits on time and size, and detects its format.

use std::{collections::VecDeque, mem, time::Duration};

use reqwest::Response;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use toolyard_core::sse::{SseError, SseEvent, SseLimits, SseParser};

use super::{Prices, ServerError, TokenEstimate, config::ModelServerConfig};
use crate::{ModelEvent, Usage};

/// Limits the wait for usage after the reply.
const USAGE_TIMEOUT: Duration = Duration::from_secs(3);
/// Limits comments and unknown fields of events.
const MAX_LINE_BYTES: usize = 64 << 10;
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// Turns a response in one protocol into events.
pub(crate) trait ReplyParser: Send + Sync {
    /// Parses the data of a stream's event.
    fn parse(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ServerError>;

    /// Parses a response that is not streamed.
    fn parse_complete(&mut self, value: &Value, events: &mut Vec<ModelEvent>) -> Result<(), ServerError>;

    /// Whether nothing more follows.
    fn is_done(&self) -> bool;

    /// Whether the reply is complete; usage may still follow.
    fn is_finished(&self) -> bool;

    /// The usage of a reply that failed; zero if nothing arrived. `input` estimates the length of the request.
    fn partial_usage(&self, input: TokenEstimate, prices: &Prices) -> Usage;

    /// The last events of a complete reply.
    fn finish(&mut self, input: TokenEstimate, prices: &Prices) -> Vec<ModelEvent>;
}

pub(super) struct ResponseReader<R> {
    response: Response,
    format: BodyFormat,
    parser: R,
    /// The estimated length of the request.
    input: TokenEstimate,
    deadline: Instant,
    total_bytes: usize,
    has_started: bool,
}

/// The format of a body. Content types are unreliable, so the first bytes decide.
enum BodyFormat {
    Unknown(Vec<u8>),
    Events(Box<SseParser>),
    /// One JSON value, or one per line.
    Json(Vec<u8>),
}

pub(super) enum ReadError {
    Timeout,
    Connection(reqwest::Error),
    /// The body ended before the reply did.
    Incomplete,
    TooLong,
    Server(ServerError),
}

impl From<SseError> for ReadError {
    fn from(_: SseError) -> Self {
        // Nothing else can fail: lenient parsers accept invalid UTF-8.
        Self::TooLong
    }
}

impl From<ServerError> for ReadError {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

impl<R: ReplyParser> ResponseReader<R> {
    pub(super) fn new(response: Response, parser: R, input: TokenEstimate, deadline: Instant) -> Self {
        Self {
            response,
            format: BodyFormat::Unknown(Vec::new()),
            parser,
            input,
            deadline,
            total_bytes: 0,
            has_started: false,
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.has_started
    }

    pub(super) fn usage(&self, prices: &Prices) -> Usage {
        self.parser.partial_usage(self.input, prices)
    }

    /// Reads the next chunk; returns false once the reply is complete.
    pub(super) async fn read(
        &mut self,
        config: &ModelServerConfig,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<bool, ReadError> {
        let chunk = match timeout_at(self.deadline, self.response.chunk()).await {
            // A complete reply needs no orderly end.
            Err(_) | Ok(Err(_)) if self.parser.is_finished() => None,
            Err(_) => return Err(ReadError::Timeout),
            Ok(Err(error)) => return Err(ReadError::Connection(error)),
            Ok(Ok(chunk)) => chunk,
        };
        let is_end = chunk.is_none();
        let mut new_events = Vec::new();
        let outcome = match chunk {
            Some(bytes) => self.parse(&bytes, config, &mut new_events),
            None => self.parse_end(&mut new_events),
        };
        if !new_events.is_empty() {
            self.has_started = true;
            self.deadline = Instant::now() + config.idle_timeout;
        }
        events.extend(new_events);
        outcome?;
        if self.parser.is_finished() {
            self.deadline = self.deadline.min(Instant::now() + USAGE_TIMEOUT);
        }
        if !is_end && !self.parser.is_done() {
            return Ok(true);
        }
        if !self.parser.is_finished() {
            return Err(ReadError::Incomplete);
        }
        events.extend(self.parser.finish(self.input, &config.prices.unwrap_or_default()));
        Ok(false)
    }

    fn parse(
        &mut self,
        bytes: &[u8],
        config: &ModelServerConfig,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ReadError> {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len());
        if self.total_bytes > config.response_limits.max_total_bytes {
            return Err(ReadError::TooLong);
        }
        match &mut self.format {
            BodyFormat::Unknown(start) => {
                start.extend_from_slice(bytes);
                let text = start.strip_prefix(UTF8_BOM).unwrap_or(start).trim_ascii_start();
                let Some(first) = text.first() else { return Ok(()) };
                let text = text.to_vec();
                if matches!(first, b'{' | b'[' | b'<') {
                    self.format = BodyFormat::Json(text);
                    return Ok(());
                }
                let max_data_bytes = config.response_limits.max_event_bytes;
                let max_line_bytes = MAX_LINE_BYTES.min(max_data_bytes);
                let parser = SseParser::lenient(SseLimits { max_data_bytes, max_line_bytes });
                self.format = BodyFormat::Events(Box::new(parser));
                self.parse_events(&text, events)
            }
            BodyFormat::Json(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            BodyFormat::Events(_) => self.parse_events(bytes, events),
        }
    }

    fn parse_events(&mut self, mut bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ReadError> {
        let BodyFormat::Events(sse) = &mut self.format else { return Ok(()) };
        while let Some(event) = sse.next(&mut bytes)? {
            apply_event(&mut self.parser, &event, events)?;
        }
        Ok(())
    }

    /// Parses what is left at the end of the body.
    fn parse_end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ReadError> {
        match &mut self.format {
            BodyFormat::Unknown(_) => Ok(()),
            BodyFormat::Events(sse) => {
                if let Some(event) = sse.finish()? {
                    apply_event(&mut self.parser, &event, events)?;
                }
                Ok(())
            }
            BodyFormat::Json(body) => {
                let body = mem::take(body);
                let body = String::from_utf8_lossy(&body);
                if let Ok(value) = serde_json::from_str(&body) {
                    return Ok(self.parser.parse_complete(&value, events)?);
                }
                if body.starts_with('<') {
                    return Err(ServerError::malformed("a web page").into());
                }
                // Some servers stream JSON objects line by line.
                Ok(self.parser.parse(&body, events)?)
            }
        }
    }
}

fn apply_event(
    parser: &mut impl ReplyParser,
    event: &SseEvent,
    events: &mut Vec<ModelEvent>,
) -> Result<(), ServerError> {
    if event.event.trim().eq_ignore_ascii_case("error") {
        return Err(ServerError::from_event(&event.data));
    }
    parser.parse(&event.data, events)
}
