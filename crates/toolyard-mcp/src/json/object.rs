//! [`JsonObject`]: writes JSON objects field by field.

use serde_json::Value;
use toolyard_core::RawJson;

/// A JSON object under construction. Raw JSON is inserted unchanged, so building never fails.
///
/// ```
/// # use toolyard_core::RawJson;
/// # use toolyard_mcp::{JsonObject, jsonrpc::request};
/// let arguments = RawJson::parse(r#"{"b":1.0,"a":2}"#.to_owned())?;
/// let params = JsonObject::new().with_text("name", "add").with_raw("arguments", &arguments);
/// assert_eq!(
///     request(7, "tools/call", &params),
///     br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"b":1.0,"a":2}}}"#
/// );
/// # Ok::<(), toolyard_core::InvalidJson>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonObject {
    /// The fields without the braces.
    fields: String,
}

impl JsonObject {
    /// An empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy with capacity for `bytes` more.
    #[must_use]
    pub fn clone_with_capacity(&self, bytes: usize) -> Self {
        let mut fields = String::with_capacity(self.fields.len() + bytes);
        fields.push_str(&self.fields);
        Self { fields }
    }

    /// The fields of an existing object; anything else becomes an empty object.
    pub fn from_raw(raw: &RawJson) -> Self {
        let fields = raw.get().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        Self { fields: fields.unwrap_or_default().trim_ascii().to_owned() }
    }

    /// Adds a string.
    #[must_use]
    pub fn with_text(mut self, key: &str, text: &str) -> Self {
        self.begin_field(key, text.len() + 2);
        push_quoted(&mut self.fields, text);
        self
    }

    /// Adds raw JSON.
    #[must_use]
    pub fn with_raw(self, key: &str, raw: &RawJson) -> Self {
        self.with_json(key, raw.get())
    }

    /// Adds a value.
    #[must_use]
    pub fn with_value(self, key: &str, value: &Value) -> Self {
        self.with_json(key, &value.to_string())
    }

    /// Adds a nested object.
    #[must_use]
    pub fn with_object(mut self, key: &str, object: &Self) -> Self {
        self.begin_field(key, object.fields.len() + 2);
        for part in ["{", &object.fields, "}"] {
            self.fields.push_str(part);
        }
        self
    }

    /// Appends all fields of another object.
    #[must_use]
    pub fn merged_with(mut self, other: &Self) -> Self {
        self.fields.reserve(other.fields.len() + 1);
        if !self.fields.is_empty() && !other.fields.is_empty() {
            self.fields.push(',');
        }
        self.fields.push_str(&other.fields);
        self
    }

    /// The finished object.
    pub fn to_raw(&self) -> RawJson {
        // Every part is valid JSON.
        RawJson::parse(self.to_string()).unwrap_or_else(|_| RawJson::empty_object())
    }

    pub(crate) fn fields(&self) -> &str {
        &self.fields
    }

    /// Whether the object has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn with_json(mut self, key: &str, json: &str) -> Self {
        self.begin_field(key, json.len());
        self.fields.push_str(json);
        self
    }

    /// Writes the key of a field and reserves capacity for its value.
    fn begin_field(&mut self, key: &str, value_bytes: usize) {
        self.fields.reserve(key.len() + value_bytes + 4);
        if !self.fields.is_empty() {
            self.fields.push(',');
        }
        push_quoted(&mut self.fields, key);
        self.fields.push(':');
    }
}

impl std::fmt::Display for JsonObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}}}", self.fields)
    }
}

pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(&mut quoted, text);
    quoted
}

/// Writes a JSON string. Most texts need no escapes.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    // Branch-free scan of all bytes.
    let needs_escape = |found, byte| found | (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, needs_escape) {
        out.push_str(&Value::from(text).to_string());
        return;
    }
    out.reserve(text.len() + 2);
    for part in ["\"", text, "\""] {
        out.push_str(part);
    }
}
