//! [`Message`]: decodes the envelope of JSON-RPC messages and leaves payloads raw.

use serde::{Deserialize, Serialize};
use toolyard_core::{JsonCursor, JsonError, JsonKind, JsonText, RawJson, SharedText};

use super::RpcError;
use crate::{WireError, WireLimits};

/// Messages in a batch. Only revision 2025-03-26 has batches, and nobody sends large ones.
const MAX_BATCH_MESSAGES: usize = 1_000;
/// Bytes of a method or id: both are logged and sent back.
const MAX_NAME_BYTES: usize = 1_024;

/// The id of an incoming request: a JSON number or string, kept as sent so that the response repeats it exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub RawJson);

/// The id of a response: that of a request of this side, as the other side repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseId {
    /// An integer, as most requests have.
    Number(u64),
    /// A string.
    Text(String),
}

impl ResponseId {
    /// The id, if it is an integer.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }

    fn read(id: JsonText<'_>) -> Option<Self> {
        match id.string() {
            Some(text) => (text.len() <= MAX_NAME_BYTES).then(|| Self::Text(text.into_owned())),
            // `1.0` is the id of no request.
            None => id.number().map(Self::Number),
        }
    }
}

/// A message from the other side.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A response to a request of this side.
    Response {
        /// The id of the request; none if the other side could not read it, or sent something else.
        id: Option<ResponseId>,
        /// The raw result, or the error.
        outcome: Result<RawJson, RpcError>,
    },
    /// A request of the other side.
    Request {
        /// The id to respond with.
        id: RequestId,
        /// The method.
        method: String,
        /// The raw parameters.
        params: Option<RawJson>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The raw parameters.
        params: Option<RawJson>,
    },
}

impl Message {
    /// Decodes one message or a batch (revision 2025-03-26).
    ///
    /// One pass checks every byte, so payloads are valid JSON within the depth limit. Harmless mistakes are accepted: a
    /// missing version, `null` for absent fields, unknown fields. Ambiguous messages are rejected: those with a repeated
    /// field.
    pub fn read(text: String, limits: &WireLimits) -> Result<Vec<Self>, WireError> {
        if text.len() > limits.message_bytes {
            return Err(WireError::TooLong { what: "a message", limit: limits.message_bytes });
        }
        let text = SharedText::from(text);
        let mut cursor = JsonCursor::indexing(&text, limits.depth);
        let messages = match cursor.enter_array()? {
            true => read_batch(&mut cursor, &text)?,
            false => vec![Envelope::read(&mut cursor)?.and_then(|envelope| envelope.into_message(&text))?],
        };
        cursor.end()?;
        Ok(messages)
    }
}

/// The valid messages of a batch. Invalid ones are skipped; a batch without a valid message is rejected.
fn read_batch(cursor: &mut JsonCursor<'_>, text: &SharedText) -> Result<Vec<Message>, WireError> {
    let mut messages = Vec::new();
    let mut last_error = WireError::NotJsonRpc("empty batch");
    let mut count = 0;
    while cursor.next_item()? {
        count += 1;
        if count > MAX_BATCH_MESSAGES {
            return Err(WireError::NotJsonRpc("more than 1,000 messages in a batch"));
        }
        match Envelope::read(cursor)?.and_then(|envelope| envelope.into_message(text)) {
            Ok(message) => messages.push(message),
            Err(error) => {
                tracing::debug!(%error, "skipped an invalid message of a batch");
                last_error = error;
            }
        }
    }
    if messages.is_empty() { Err(last_error) } else { Ok(messages) }
}

#[derive(Debug, Default)]
struct Envelope<'t> {
    version: Option<JsonText<'t>>,
    id: Option<JsonText<'t>>,
    method: Option<JsonText<'t>>,
    params: Option<JsonText<'t>>,
    result: Option<JsonText<'t>>,
    error: Option<JsonText<'t>>,
}

impl<'t> Envelope<'t> {
    /// Reads one value. The outer error ends a batch; after the inner one the batch continues.
    fn read(cursor: &mut JsonCursor<'t>) -> Result<Result<Self, WireError>, WireError> {
        let mut envelope = Self::default();
        if !cursor.enter_object()? {
            cursor.next_value()?;
            return Ok(Err(WireError::NotJsonRpc("not an object")));
        }
        let mut is_repeated = false;
        while let Some(key) = cursor.next_key()? {
            let value = cursor.next_value()?;
            if let Some(field) = envelope.field(&key) {
                // Parsers disagree on which of two ids or results counts: a proxy may have checked the other one.
                is_repeated |= field.replace(value).is_some();
            }
        }
        if is_repeated {
            return Ok(Err(WireError::NotJsonRpc("repeated field")));
        }
        Ok(Ok(envelope))
    }

    fn field(&mut self, key: &str) -> Option<&mut Option<JsonText<'t>>> {
        Some(match key {
            "jsonrpc" => &mut self.version,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => return None,
        })
    }

    fn into_message(self, text: &SharedText) -> Result<Message, WireError> {
        let is_versioned = self.version.is_some_and(|version| version.get() == "\"2.0\"");
        if !is_versioned {
            // There is no other version. But a log line in JSON has neither version nor id, even with an `error` or `method`.
            if non_null(self.id).is_none() {
                return Err(WireError::NotJsonRpc("neither version nor id"));
            }
            tracing::debug!("accepted a message without `\"jsonrpc\":\"2.0\"`");
        }
        let Some(method) = non_null(self.method) else { return self.into_response(text) };
        if non_null(self.error).or(non_null(self.result)).is_some() {
            return Err(WireError::NotJsonRpc("both method and result or error"));
        }
        let method = method.string().ok_or(WireError::NotJsonRpc("method is not a string"))?;
        if method.len() > MAX_NAME_BYTES {
            return Err(WireError::NotJsonRpc("method is too long"));
        }
        let (method, params) = (method.into_owned(), non_null(self.params).map(|params| text.part(params)));
        let Some(id) = non_null(self.id) else { return Ok(Message::Notification { method, params }) };
        match id.kind() {
            _ if id.get().len() > MAX_NAME_BYTES => Err(WireError::NotJsonRpc("id is too long")),
            JsonKind::Number | JsonKind::String => {
                Ok(Message::Request { id: RequestId(text.part(id)), method, params })
            }
            _ => Err(WireError::NotJsonRpc("id is neither number nor string")),
        }
    }

    fn into_response(self, text: &SharedText) -> Result<Message, WireError> {
        let outcome = match (non_null(self.error), self.result) {
            // Also beside a result: a reported failure must not count as success.
            (Some(error), _) => Err(RpcError::read(error, text)),
            // `null` is a valid result.
            (None, Some(result)) => Ok(text.part(result)),
            (None, None) => return Err(WireError::NotJsonRpc("neither method nor result nor error")),
        };
        let id = self.id.and_then(ResponseId::read);
        Ok(Message::Response { id, outcome })
    }
}

/// A field that is not `null`: some libraries write `null` for absent fields.
fn non_null(field: Option<JsonText<'_>>) -> Option<JsonText<'_>> {
    field.filter(|value| value.kind() != JsonKind::Null)
}

impl From<JsonError> for WireError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::TooDeep(limit) => Self::TooDeep { limit },
            JsonError::Syntax(_) => Self::NotJson(error.to_string()),
        }
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
