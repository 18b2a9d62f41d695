//! Stands in for the line reader and the decoder until they are there.
use tokio::io::{AsyncRead, AsyncReadExt};
use toolyard_core::RawJson;

use crate::wire::{self, WireError, WireLimits};

pub(super) enum Line {
    Message(String),
    Noise(String),
}

pub(super) struct LineReader<R> {
    reader: R,
    limits: WireLimits,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, limits: WireLimits) -> Self {
        Self { reader, limits, buffer: Vec::new() }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Line>, WireError> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                return Ok(Some(if text.starts_with('{') { Line::Message(text) } else { Line::Noise(text) }));
            }
            if self.buffer.len() > self.limits.message_bytes {
                return Err(WireError::TooLong { what: "a message", limit: self.limits.message_bytes });
            }
            let mut chunk = [0_u8; 8192];
            match self.reader.read(&mut chunk).await {
                Ok(count @ 1..) => self.buffer.extend(chunk.iter().take(count)),
                _ => return Ok(None),
            }
        }
    }
}

pub(super) struct Message;

impl Message {
    pub(super) fn read(text: String, _: &WireLimits) -> Result<Vec<wire::Message>, WireError> {
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| WireError::NotJson(error.to_string()))?;
        let id = value.get("id").and_then(serde_json::Value::as_u64);
        let result = value.get("result").cloned().unwrap_or_default();
        let Ok(result) = RawJson::parse(result.to_string()) else { return Err(WireError::NotJsonRpc("raw")) };
        Ok(vec![wire::Message::Response { id, outcome: Ok(result) }])
    }
}
