//! One JSON-RPC message: what is needed of its envelope, its payload untouched.

use toolyard_core::{JsonCursor, JsonFault, JsonKind, JsonText, RawJson, SharedText};

use super::{RequestId, RpcError, WireError, WireLimits};

/// More messages in one batch than this are not taken: batches were part of one revision only, and nobody sends large
/// ones.
const MAX_BATCH: usize = 1_000;
/// A method or an id longer than this is no name but an attack on whoever logs it or sends it back.
const MAX_NAME: usize = 1_024;

/// A message from the other side.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// An answer to a request of ours.
    Response {
        /// The number we gave the request; none when the other side could not read it, or made one up.
        id: Option<u64>,
        /// The result as it came, or the error.
        outcome: Result<RawJson, RpcError>,
    },
    /// The other side asks something.
    Request {
        /// To be given back.
        id: RequestId,
        /// What is asked.
        method: String,
        /// The parameters as they came.
        params: Option<RawJson>,
    },
    /// The other side tells something.
    Notification {
        /// What happened.
        method: String,
        /// The parameters as they came.
        params: Option<RawJson>,
    },
}

impl Message {
    /// Reads all messages of one text: one, or several of a batch (which only the revision 2025-03-26 knew).
    ///
    /// One pass checks every byte, so what is handed on is JSON and not nested deeper than the limit. What servers get
    /// wrong without meaning anything else by it is taken: a missing version, `null` for what is not there, fields
    /// nobody knows. What could be read in two ways is not: a field that stands twice.
    pub fn read(text: String, limits: &WireLimits) -> Result<Vec<Self>, WireError> {
        if text.len() > limits.message_bytes {
            return Err(WireError::TooLong { what: "a message", limit: limits.message_bytes });
        }
        let text = SharedText::from(text);
        let mut cursor = JsonCursor::over(&text, limits.depth);
        let messages = match cursor.enter_array()? {
            true => read_batch(&mut cursor, &text)?,
            false => vec![Envelope::read(&mut cursor)?.and_then(|envelope| envelope.open(&text))?],
        };
        cursor.end()?;
        Ok(messages)
    }
}

/// The good messages of a batch. A bad one does not take the others down; a batch without any good one is refused.
fn read_batch(cursor: &mut JsonCursor<'_>, text: &SharedText) -> Result<Vec<Message>, WireError> {
    let mut messages = Vec::new();
    let mut problem = WireError::NotJsonRpc("an empty batch");
    let mut count = 0;
    while cursor.next_item()? {
        count += 1;
        if count > MAX_BATCH {
            return Err(WireError::NotJsonRpc("a batch of more than 1,000 messages"));
        }
        match Envelope::read(cursor)?.and_then(|envelope| envelope.open(text)) {
            Ok(message) => messages.push(message),
            Err(error) => {
                tracing::debug!(%error, "a message of a batch is ignored");
                problem = error;
            }
        }
    }
    if messages.is_empty() { Err(problem) } else { Ok(messages) }
}

/// The fields of one message; none for what is missing or `null`.
#[derive(Debug, Default)]
struct Envelope<'t> {
    version: Option<JsonText<'t>>,
    id: Option<JsonText<'t>>,
    method: Option<JsonText<'t>>,
    params: Option<JsonText<'t>>,
    /// `null` is a result, though an empty one.
    result: Option<JsonText<'t>>,
    error: Option<JsonText<'t>>,
}

impl<'t> Envelope<'t> {
    /// Walks over one value. The outer error ends the walk; after the inner one it can go on.
    fn read(cursor: &mut JsonCursor<'t>) -> Result<Result<Self, WireError>, WireError> {
        let mut envelope = Self::default();
        if !cursor.enter_object()? {
            cursor.skip()?;
            return Ok(Err(WireError::NotJsonRpc("it is not an object")));
        }
        let mut twice = false;
        while let Some(key) = cursor.next_key()? {
            let value = cursor.skip()?;
            if let Some(field) = envelope.field(&key) {
                // Of two ids or results each reader may take another one: whoever stands between us and the server
                // may have checked the one that we would not use.
                twice |= field.replace(value).is_some();
            }
        }
        if twice {
            return Ok(Err(WireError::NotJsonRpc("a field stands in it twice")));
        }
        // Libraries that write out every field write `null` for those that are not there.
        for field in [&mut envelope.id, &mut envelope.method, &mut envelope.params, &mut envelope.error] {
            *field = field.filter(|value| value.kind() != JsonKind::Null);
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

    /// What kind of message it is.
    fn open(self, text: &SharedText) -> Result<Message, WireError> {
        let is_versioned = self.version.is_some_and(|version| version.get() == "\"2.0\"");
        if !is_versioned {
            // There is no other version it could be. But a log line written as JSON has neither version nor id, even
            // if it has an `error` or a `method`.
            if self.id.is_none() {
                return Err(WireError::NotJsonRpc("it has neither version nor id"));
            }
            tracing::debug!("a message without `\"jsonrpc\":\"2.0\"` is taken");
        }
        let Some(method) = self.method else { return self.open_response(text) };
        let is_answer = self.error.or(self.result).is_some_and(|value| value.kind() != JsonKind::Null);
        if is_answer {
            return Err(WireError::NotJsonRpc("it has a method and an answer"));
        }
        let method = method.string().ok_or(WireError::NotJsonRpc("its method is not a string"))?;
        if method.len() > MAX_NAME {
            return Err(WireError::NotJsonRpc("its method is too long"));
        }
        let (method, params) = (method.into_owned(), self.params.map(|params| text.part(params)));
        let Some(id) = self.id else { return Ok(Message::Notification { method, params }) };
        match id.kind() {
            _ if id.get().len() > MAX_NAME => Err(WireError::NotJsonRpc("its id is too long")),
            JsonKind::Number | JsonKind::String => {
                Ok(Message::Request { id: RequestId(text.part(id)), method, params })
            }
            _ => Err(WireError::NotJsonRpc("its id is neither number nor string")),
        }
    }

    fn open_response(self, text: &SharedText) -> Result<Message, WireError> {
        let outcome = match (self.error, self.result) {
            // Also beside a result: what says that it failed must not count as done.
            (Some(error), _) => Err(RpcError::read(error, text)),
            (None, Some(result)) => Ok(text.part(result)),
            (None, None) => return Err(WireError::NotJsonRpc("it has neither method nor result nor error")),
        };
        // Ids come back as they were sent, and we send whole numbers: `"1"` and `1.0` are nobody's.
        let id = self.id.and_then(JsonText::number);
        Ok(Message::Response { id, outcome })
    }
}

impl From<JsonFault> for WireError {
    fn from(fault: JsonFault) -> Self {
        match fault {
            JsonFault::TooDeep(limit) => Self::TooDeep { limit },
            JsonFault::NotJson(_) => Self::NotJson(fault.to_string()),
        }
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
