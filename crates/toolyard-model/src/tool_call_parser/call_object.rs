//! Recognizes calls in JSON values, in all the shapes that models give them.

use serde_json::{Map, Value};

use super::ParsedToolCall;
use crate::lenient_json::{parse_object, parse_prefix};

/// Whether markup identifies a value as a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Markup {
    /// Only calls stand here.
    Tagged,
    /// The value may be data: a call must name a known tool and have arguments.
    Untagged,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Interpretation {
    Calls(Vec<ParsedToolCall>),
    /// A description of tools, or a call with placeholders.
    Example,
    NoCall,
}

/// Fields that hold the tool's name, the most specific first.
const NAME_FIELDS: [&str; 8] =
    ["tool_name", "function_name", "name", "tool", "function", "recipient_name", "action", "tool_call_name"];
const ARGUMENT_FIELDS: [&str; 11] = [
    "arguments",
    "parameters",
    "args",
    "input",
    "params",
    "action_input",
    "tool_input",
    "tool_args",
    "tool_arguments",
    "function_args",
    "kwargs",
];
const LIST_FIELDS: [&str; 4] = ["tool_calls", "calls", "function_calls", "tool_uses"];
/// Fields that are neither name nor argument.
const METADATA_FIELDS: [&str; 8] =
    ["id", "tool_call_id", "call_id", "type", "source", "index", "thought", "reason"];
const PLACEHOLDER_NAMES: [&str; 12] = [
    "NAME",
    "TOOL",
    "TOOL_NAME",
    "FUNCTION_NAME",
    "tool_name",
    "function_name",
    "function-name",
    "tool-name",
    "name",
    "string",
    "工具名称",
    "工具名",
];
/// Longer text in angle brackets is not a placeholder.
const MAX_PLACEHOLDER_BYTES: usize = 60;
/// Namespaces that some models write before a name.
const NAME_PREFIXES: [&str; 5] = ["functions.", "function.", "tools.", "default_api.", "tool."];

pub(super) fn interpret_value(
    value: &Value,
    markup: Markup,
    is_tool: &dyn Fn(&str) -> bool,
) -> Interpretation {
    match value {
        Value::Array(items) => interpret_list(items, markup, is_tool),
        Value::Object(map) => {
            let list = LIST_FIELDS.iter().find_map(|field| map.get(*field).and_then(Value::as_array));
            match list.filter(|_| !NAME_FIELDS.iter().any(|name| map.contains_key(*name))) {
                Some(items) => interpret_list(items, markup, is_tool),
                None => interpret_object(map, markup, is_tool),
            }
        }
        // A call encoded as a string.
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => match parse_prefix(text) {
            Ok((inner @ (Value::Object(_) | Value::Array(_)), _)) => interpret_value(&inner, markup, is_tool),
            _ => Interpretation::NoCall,
        },
        _ => Interpretation::NoCall,
    }
}

fn interpret_list(items: &[Value], markup: Markup, is_tool: &dyn Fn(&str) -> bool) -> Interpretation {
    if items.is_empty() && markup == Markup::Untagged {
        return Interpretation::NoCall;
    }
    let mut calls = Vec::new();
    for item in items {
        let Value::Object(map) = item else { return Interpretation::NoCall };
        match interpret_object(map, markup, is_tool) {
            Interpretation::Calls(call) => calls.extend(call),
            other => return other,
        }
    }
    Interpretation::Calls(calls)
}

fn interpret_object(
    map: &Map<String, Value>,
    markup: Markup,
    is_tool: &dyn Fn(&str) -> bool,
) -> Interpretation {
    // `{"type": "function", "function": {"name": …, "arguments": …}}`, and the same under other names.
    for field in ["function", "function_call", "tool_call", "tool"] {
        if let Some(Value::Object(inner)) = map.get(field) {
            let id = find_id(map);
            return match interpret_object(inner, markup, is_tool) {
                Interpretation::Calls(calls) => {
                    let with_id =
                        |call: ParsedToolCall| ParsedToolCall { id: call.id.or_else(|| id.clone()), ..call };
                    Interpretation::Calls(calls.into_iter().map(with_id).collect())
                }
                other => other,
            };
        }
    }
    let Some((name_field, name)) = find_name(map, is_tool) else {
        return interpret_keyed_object(map, markup, is_tool);
    };
    let arguments_value =
        ARGUMENT_FIELDS.iter().filter(|field| **field != name_field).find_map(|field| map.get(*field));
    let arguments = match arguments_value {
        Some(value) => match parse_argument_value(value) {
            Some(arguments) => arguments,
            None => return Interpretation::NoCall,
        },
        None if markup == Markup::Untagged => return Interpretation::NoCall,
        // The arguments stand beside the name.
        None => {
            let is_argument =
                |field: &String| field != name_field && !METADATA_FIELDS.contains(&field.as_str());
            let arguments = map.iter().filter(|(field, _)| is_argument(field));
            arguments.map(|(field, value)| (field.clone(), value.clone())).collect()
        }
    };
    let source = map.get("source").and_then(Value::as_str).map(str::to_owned);
    check_call(ParsedToolCall { id: find_id(map), name, arguments, source }, markup, is_tool)
}

/// `{"get_time": {"timezone": …}}`, for tagged calls of known tools only.
fn interpret_keyed_object(
    map: &Map<String, Value>,
    markup: Markup,
    is_tool: &dyn Fn(&str) -> bool,
) -> Interpretation {
    let mut fields = map.iter();
    match (fields.next(), fields.next()) {
        (Some((name, Value::Object(arguments))), None) if markup == Markup::Tagged && is_tool(name) => {
            let call =
                ParsedToolCall { id: None, name: name.clone(), arguments: arguments.clone(), source: None };
            check_call(call, markup, is_tool)
        }
        _ => Interpretation::NoCall,
    }
}

/// Rejects calls with placeholders and untagged calls of unknown tools.
pub(super) fn check_call(
    call: ParsedToolCall,
    markup: Markup,
    is_tool: &dyn Fn(&str) -> bool,
) -> Interpretation {
    let is_known = is_tool(&call.name);
    if !is_known && (PLACEHOLDER_NAMES.contains(&call.name.as_str()) || is_placeholder(&call.name)) {
        return Interpretation::Example;
    }
    if is_schema(&call.arguments)
        || call.arguments.values().any(|value| value.as_str().is_some_and(is_placeholder))
    {
        return Interpretation::Example;
    }
    if !is_known && markup == Markup::Untagged {
        return Interpretation::NoCall;
    }
    Interpretation::Calls(vec![call])
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

fn is_schema(arguments: &Map<String, Value>) -> bool {
    let is_object = arguments.get("type").and_then(Value::as_str) == Some("object");
    if is_object && arguments.get("properties").is_some_and(Value::is_object) {
        return true;
    }
    let is_parameter_schema = |value: &Value| {
        value.get("type").is_some_and(Value::is_string)
            && value.get("description").is_some_and(Value::is_string)
    };
    !arguments.is_empty() && arguments.values().all(is_parameter_schema)
}

/// The name and its field: the name of a known tool, or else the most specific field.
fn find_name(map: &Map<String, Value>, is_tool: &dyn Fn(&str) -> bool) -> Option<(&'static str, String)> {
    let candidates = NAME_FIELDS.iter().filter_map(|field| {
        let name = normalize_name(map.get(*field)?.as_str()?, is_tool);
        (!name.is_empty()).then_some((*field, name))
    });
    let mut first = None;
    for (field, name) in candidates {
        if is_tool(&name) {
            return Some((field, name));
        }
        first = first.or(Some((field, name)));
    }
    first
}

/// Removes what models add to a name: quotes, namespaces, `()` and the number of the call.
pub(super) fn normalize_name(name: &str, is_tool: &dyn Fn(&str) -> bool) -> String {
    let name = name.trim().trim_matches(['`', '"', '\'', '*']).trim();
    if is_tool(name) {
        return name.to_owned();
    }
    let bare = NAME_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let bare = bare.strip_suffix("()").unwrap_or(bare);
    let numbered = bare.rsplit_once(':').filter(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
    numbered.map_or(bare, |(bare, _)| bare).to_owned()
}

/// Parses arguments given as an object, as its JSON text, or as nothing.
fn parse_argument_value(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map.clone()),
        Value::Null => Some(Map::new()),
        Value::Array(items) if items.is_empty() => Some(Map::new()),
        Value::String(text) => parse_arguments(text),
        _ => None,
    }
}

/// Parses arguments as a model wrote them: an object in JSON or nearly so. Empty text is the empty object.
pub fn parse_arguments(text: &str) -> Option<Map<String, Value>> {
    if text.trim().is_empty() {
        return Some(Map::new());
    }
    match parse_object(text) {
        Some(map) => Some(map),
        // An object encoded as a string.
        None => match parse_prefix(text).ok()? {
            (Value::String(inner), used) if text.get(used..)?.trim().is_empty() => parse_object(&inner),
            (Value::Null, _) => Some(Map::new()),
            _ => None,
        },
    }
}

fn find_id(map: &Map<String, Value>) -> Option<String> {
    ["id", "tool_call_id", "call_id"].iter().find_map(|field| match map.get(*field)? {
        Value::String(id) if !id.trim().is_empty() => Some(id.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

#[cfg(test)]
#[path = "call_object_tests.rs"]
mod tests;
