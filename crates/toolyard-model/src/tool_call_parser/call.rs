//! Recognizes calls in JSON values.

use serde_json::{Map, Value};

use super::ParsedToolCall;
use crate::json_text::parse_prefix;

/// What a JSON value stands for.
#[derive(Debug, PartialEq)]
pub(super) enum Interpretation {
    Calls(Vec<ParsedToolCall>),
    /// A call with placeholders.
    Example,
    NoCall,
}

/// Fields that hold the tool's name: that of the specification first.
const NAME_FIELDS: [&str; 2] = ["tool_name", "name"];
const ARGUMENTS_FIELD: &str = "arguments";
/// Fields of a call besides its name and arguments.
const OTHER_FIELDS: [&str; 3] = ["id", "source", "type"];
/// The tool's name in the prompts that explain the form.
const PLACEHOLDER_NAMES: [&str; 2] = ["NAME", "工具名称"];
/// Longer text in angle brackets is not a placeholder.
const MAX_PLACEHOLDER_BYTES: usize = 60;

/// The calls in an object or in a list of objects.
pub(super) fn interpret(value: &Value) -> Interpretation {
    let objects = match value {
        Value::Array(items) => items.as_slice(),
        other => std::slice::from_ref(other),
    };
    let mut calls = Vec::new();
    for object in objects {
        let Some(call) = object.as_object().and_then(read_call) else { return Interpretation::NoCall };
        let is_example = PLACEHOLDER_NAMES.contains(&call.name.as_str())
            || is_placeholder(&call.name)
            || call.arguments.values().any(|value| value.as_str().is_some_and(is_placeholder));
        if is_example {
            return Interpretation::Example;
        }
        calls.push(call);
    }
    if calls.is_empty() { Interpretation::NoCall } else { Interpretation::Calls(calls) }
}

/// Whether every call in a value has arguments, though perhaps empty ones.
pub(super) fn has_arguments(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(has_arguments),
        other => other.get(ARGUMENTS_FIELD).is_some(),
    }
}

fn read_call(fields: &Map<String, Value>) -> Option<ParsedToolCall> {
    let name = NAME_FIELDS.iter().find_map(|field| fields.get(*field))?.as_str()?.trim();
    let arguments = match fields.get(ARGUMENTS_FIELD) {
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::String(text)) => parse_arguments(text)?,
        Some(Value::Null) => Map::new(),
        Some(_) => return None,
        // Arguments that stand elsewhere would be lost.
        None if fields.keys().all(|field| is_known_field(field)) => Map::new(),
        None => return None,
    };
    let id = match fields.get("id") {
        Some(Value::String(id)) if !id.trim().is_empty() => Some(id.trim().to_owned()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let source = fields.get("source").and_then(Value::as_str).map(str::to_owned);
    (!name.is_empty()).then(|| ParsedToolCall { id, name: name.to_owned(), arguments, source })
}

fn is_known_field(field: &str) -> bool {
    NAME_FIELDS.contains(&field) || OTHER_FIELDS.contains(&field)
}

/// Whether a value is a placeholder: an ellipsis, or words in angle brackets.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    if matches!(text, "..." | "…" | "……") {
        return true;
    }
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.');
    // A single element is rather a placeholder than a document.
    inner.is_some_and(|inner| {
        !inner.is_empty() && inner.len() <= MAX_PLACEHOLDER_BYTES && inner.chars().all(is_word)
    })
}

/// The name of the tool in a truncated call.
pub(super) fn truncated_name(text: &str) -> Option<&str> {
    NAME_FIELDS.iter().find_map(|field| {
        let (_, after) = text.split_once(&format!("\"{field}\""))?;
        let name = after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        Some(name.split_once('"')?.0)
    })
}

/// Parses the arguments of a call: an object as JSON text, perhaps encoded as a string. Empty text is the empty object.
pub fn parse_arguments(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Map::new());
    }
    let (value, used) = parse_prefix(text).ok()?;
    match value {
        _ if used < text.len() => None,
        Value::Object(arguments) => Some(arguments),
        Value::Null => Some(Map::new()),
        Value::String(inner) => match serde_json::from_str(&inner).ok()? {
            Value::Object(arguments) => Some(arguments),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_have_the_fields_of_the_specification_or_of_hermes() {
        for value in [
            json!({"id": 3, "tool_name": "get_time", "arguments": {"a": 1}, "source": "mcp"}),
            json!([{"id": " 3 ", "name": " get_time", "arguments": "{\"a\": 1}", "source": "mcp"}]),
        ] {
            let Interpretation::Calls(calls) = interpret(&value) else { panic!("{value} is no call") };
            let arguments = Map::from_iter([("a".to_owned(), json!(1))]);
            let (id, source) = (Some("3".to_owned()), Some("mcp".to_owned()));
            assert_eq!(calls, [ParsedToolCall { id, name: "get_time".to_owned(), arguments, source }]);
        }
        for empty in [
            json!({"name": "a"}),
            json!({"name": "a", "arguments": null}),
            json!({"name": "a", "arguments": ""}),
        ] {
            let Interpretation::Calls(calls) = interpret(&empty) else { panic!("{empty} is no call") };
            assert!(calls[0].arguments.is_empty());
        }
    }

    #[test]
    fn other_values_are_no_calls() {
        for value in [
            json!({"name": "get_time", "timezone": "Asia/Tokyo"}),
            json!({"name": "get_time", "parameters": {"type": "object"}}),
            json!({"get_time": {"timezone": "Asia/Tokyo"}}),
            json!({"name": "", "arguments": {}}),
            json!({"name": 1, "arguments": {}}),
            json!({"name": "a", "arguments": 42}),
            json!({"name": "a", "arguments": [1]}),
            json!({"name": "a", "arguments": "one plus one"}),
            json!([{"name": "a", "arguments": {}}, "and so on"]),
            json!([]),
            json!("a"),
        ] {
            assert_eq!(interpret(&value), Interpretation::NoCall, "{value}");
        }
    }

    #[test]
    fn placeholders_are_examples() {
        for value in [
            json!({"tool_name": "NAME", "arguments": {}}),
            json!({"tool_name": "工具名称", "arguments": {}}),
            json!({"name": "<function-name>", "arguments": {}}),
            json!({"name": "a", "arguments": {"path": "..."}}),
            json!([{"name": "a", "arguments": {}}, {"name": "a", "arguments": {"path": " <your file> "}}]),
        ] {
            assert_eq!(interpret(&value), Interpretation::Example, "{value}");
        }
        let html = json!({"name": "a", "arguments": {"content": "<p>Hi</p>"}});
        assert!(matches!(interpret(&html), Interpretation::Calls(_)));
    }

    #[test]
    fn arguments_are_an_object_its_json_or_nothing() {
        let object = Map::from_iter([("a".to_owned(), json!(1))]);
        for text in ["{\"a\": 1}", " {\"a\":1}\n", "\"{\\\"a\\\": 1}\""] {
            assert_eq!(parse_arguments(text), Some(object.clone()), "{text}");
        }
        for text in ["", " ", "null", "{}"] {
            assert_eq!(parse_arguments(text), Some(Map::new()), "{text}");
        }
        for text in ["nonsense", "{'a': 1}", "{\"a\": 1} {}", "{\"a\":", "[1]", "7", "\"a\""] {
            assert_eq!(parse_arguments(text), None, "{text}");
        }
    }
}
