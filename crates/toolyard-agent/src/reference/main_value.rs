//! The main part of a result: tools wrap it in an object, and models name the wrapper.

use serde_json::Value;

/// Names that models give to a result as a whole.
const WRAPPER_NAMES: [&str; 14] = [
    "result",
    "results",
    "output",
    "outputs",
    "value",
    "data",
    "content",
    "contents",
    "response",
    "text",
    "answer",
    "structured",
    "structuredContent",
    "return",
];
/// Fields that describe the field `result` beside them, as in outputs of `calculate`.
const METADATA_FIELDS: [&str; 9] =
    ["exact", "approximate", "note", "ignored", "counted", "success", "ok", "unit", "status"];

/// Whether a key only means "the result".
pub(super) fn is_wrapper(key: &str) -> bool {
    WRAPPER_NAMES.contains(&key)
}

/// The `result` field of a value whose other fields are metadata, else the value.
pub(super) fn main_value(value: &Value) -> &Value {
    match value {
        Value::Object(entries)
            if entries.keys().all(|key| key == "result" || METADATA_FIELDS.contains(&key.as_str())) =>
        {
            entries.get("result").unwrap_or(value)
        }
        _ => value,
    }
}
