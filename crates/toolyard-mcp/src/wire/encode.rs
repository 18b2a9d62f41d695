//! JSON-RPC messages of our own as bytes: one line each, raw payloads as they are.

use serde_json::Value;
use toolyard_core::RawJson;

use super::RequestId;

/// An object that is being written: raw JSON goes in as it is, so nothing of it can fail or change.
///
/// ```
/// # use toolyard_core::RawJson;
/// # use toolyard_mcp::wire::{JsonObject, request};
/// let arguments = RawJson::parse(r#"{"b":1.0,"a":2}"#.to_owned())?;
/// let params = JsonObject::new().with_text("name", "add").with_raw("arguments", &arguments);
/// assert_eq!(
///     request(7, "tools/call", &params),
///     br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"b":1.0,"a":2}}}"#
/// );
/// # Ok::<(), toolyard_core::NotJson>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonObject {
    /// Everything between the braces.
    inside: String,
}

impl JsonObject {
    /// An empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same object with room for so many more bytes, for whoever goes on with it.
    #[must_use]
    pub(crate) fn with_room(&self, bytes: usize) -> Self {
        let mut inside = String::with_capacity(self.inside.len() + bytes);
        inside.push_str(&self.inside);
        Self { inside }
    }

    /// An object that somebody else wrote; what is no object is taken for an empty one.
    pub fn of(raw: &RawJson) -> Self {
        let inside = raw.get().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        Self { inside: inside.unwrap_or_default().trim_ascii().to_owned() }
    }

    /// The same with one more field that holds a text.
    #[must_use]
    pub fn with_text(mut self, key: &str, text: &str) -> Self {
        self.begin(key, text.len() + 2);
        push_quoted(&mut self.inside, text);
        self
    }

    /// The same with one more field that holds raw JSON.
    #[must_use]
    pub fn with_raw(self, key: &str, raw: &RawJson) -> Self {
        self.with_json(key, raw.get())
    }

    /// The same with one more field that holds a value.
    #[must_use]
    pub fn with_value(self, key: &str, value: &Value) -> Self {
        self.with_json(key, &value.to_string())
    }

    /// The same with one more field that holds another object.
    #[must_use]
    pub fn with_object(mut self, key: &str, object: &Self) -> Self {
        self.begin(key, object.inside.len() + 2);
        for piece in ["{", &object.inside, "}"] {
            self.inside.push_str(piece);
        }
        self
    }

    /// The same with all fields of another object after its own.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.inside.reserve(other.inside.len() + 1);
        if !self.inside.is_empty() && !other.inside.is_empty() {
            self.inside.push(',');
        }
        self.inside.push_str(&other.inside);
        self
    }

    /// The object as JSON.
    pub fn to_raw(&self) -> RawJson {
        // It was put together from nothing but JSON.
        RawJson::parse(self.to_string()).unwrap_or_else(|_| RawJson::empty_object())
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    fn with_json(mut self, key: &str, json: &str) -> Self {
        self.begin(key, json.len());
        self.inside.push_str(json);
        self
    }

    /// Writes everything of a field but its value, for which there is room then.
    fn begin(&mut self, key: &str, value: usize) {
        self.inside.reserve(key.len() + value + 4);
        if !self.inside.is_empty() {
            self.inside.push(',');
        }
        push_quoted(&mut self.inside, key);
        self.inside.push(':');
    }
}

impl std::fmt::Display for JsonObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}}}", self.inside)
    }
}

/// A request with a number of our own.
pub fn request(id: u64, method: &str, params: &JsonObject) -> Vec<u8> {
    let mut head = format!(r#""id":{id},"method":"#);
    push_quoted(&mut head, method);
    message(&head, Some(("params", "{", &params.inside, "}")))
}

/// A notification. Parameters that say nothing are left out.
pub fn notification(method: &str, params: &JsonObject) -> Vec<u8> {
    let params = (!params.is_empty()).then_some(("params", "{", params.inside.as_str(), "}"));
    message(&format!(r#""method":{}"#, quoted(method)), params)
}

/// The answer to a request of the other side.
pub fn response(id: &RequestId, result: &RawJson) -> Vec<u8> {
    message(&format!(r#""id":{}"#, id.0.get()), Some(("result", "", result.get(), "")))
}

/// The answer to a request of the other side that cannot be answered.
pub fn error_response(id: &RequestId, code: i64, text: &str) -> Vec<u8> {
    let inside = format!(r#""code":{code},"message":{}"#, quoted(text));
    message(&format!(r#""id":{}"#, id.0.get()), Some(("error", "{", &inside, "}")))
}

/// The version, the head, and one more field: its key, and its JSON in three pieces so that it is copied only once.
fn message(head: &str, field: Option<(&str, &str, &str, &str)>) -> Vec<u8> {
    let length = field.map_or(0, |(key, _, json, _)| key.len() + json.len());
    let mut text = String::with_capacity(head.len() + length + 32);
    text.push_str(r#"{"jsonrpc":"2.0","#);
    text.push_str(head);
    if let Some((key, before, json, after)) = field {
        for piece in [",\"", key, "\":", before, json, after] {
            text.push_str(piece);
        }
    }
    text.push('}');
    one_line(text.into_bytes())
}

/// The same JSON on one line. Line ends may stand only between the tokens of JSON text, never inside a string, so a
/// blank in their place changes nothing that it says.
fn one_line(mut json: Vec<u8>) -> Vec<u8> {
    let mut rest = json.as_mut_slice();
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        let Some((end, after)) = rest.get_mut(at..).and_then(<[u8]>::split_first_mut) else { break };
        *end = b' ';
        rest = after;
    }
    json
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(&mut quoted, text);
    quoted
}

/// Writes a text as JSON. Most texts have nothing in them that must be written differently.
fn push_quoted(out: &mut String, text: &str) {
    // All bytes are looked at, without a branch for each.
    let special = |found, byte| found | (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, special) {
        out.push_str(&Value::from(text).to_string());
        return;
    }
    out.reserve(text.len() + 2);
    for piece in ["\"", text, "\""] {
        out.push_str(piece);
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
