//! Whether a JSON value is a call, in all the shapes that models give one.

use serde_json::{Map, Value};

use super::{
    TextCall,
    loose_json::{Brackets, read_object, read_value},
};

/// How much a call has to show for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It stands where only calls stand.
    Tagged,
    /// It may as well be data: it must name a tool that exists, and have arguments.
    Untagged,
}

/// What a value turns out to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Calls(Vec<TextCall>),
    /// A description of tools, or a call with blanks to be filled in.
    Example,
    /// Something else.
    Other,
}

/// The fields that hold the name, the more telling first.
const NAMES: [&str; 8] =
    ["tool_name", "function_name", "name", "tool", "function", "recipient_name", "action", "tool_call_name"];
/// The fields that hold the arguments.
const ARGUMENTS: [&str; 11] = [
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
/// The fields that hold several calls.
const LISTS: [&str; 4] = ["tool_calls", "calls", "function_calls", "tool_uses"];
/// The fields that are neither name nor argument.
const OTHERS: [&str; 8] = ["id", "tool_call_id", "call_id", "type", "source", "index", "thought", "reason"];
/// Names that stand for a name.
const BLANKS: [&str; 12] = [
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
/// What some models write before a name.
const PREFIXES: [&str; 5] = ["functions.", "function.", "tools.", "default_api.", "tool."];

/// What a value turns out to be.
pub(super) fn shape(value: &Value, standing: Standing, is_tool: &dyn Fn(&str) -> bool) -> Shape {
    match value {
        Value::Array(items) => several(items, standing, is_tool),
        Value::Object(map) => {
            let list = LISTS.iter().find_map(|field| map.get(*field).and_then(Value::as_array));
            match list.filter(|_| !NAMES.iter().any(|name| map.contains_key(*name))) {
                Some(items) => several(items, standing, is_tool),
                None => one(map, standing, is_tool),
            }
        }
        // The whole call once more as a string.
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            match read_value(text, Brackets::Closed) {
                Ok((inner @ (Value::Object(_) | Value::Array(_)), _)) => shape(&inner, standing, is_tool),
                _ => Shape::Other,
            }
        }
        _ => Shape::Other,
    }
}

fn several(items: &[Value], standing: Standing, is_tool: &dyn Fn(&str) -> bool) -> Shape {
    if items.is_empty() && standing == Standing::Untagged {
        return Shape::Other;
    }
    let mut calls = Vec::new();
    for item in items {
        let Value::Object(map) = item else { return Shape::Other };
        match one(map, standing, is_tool) {
            Shape::Calls(call) => calls.extend(call),
            other => return other,
        }
    }
    Shape::Calls(calls)
}

fn one(map: &Map<String, Value>, standing: Standing, is_tool: &dyn Fn(&str) -> bool) -> Shape {
    // `{"type": "function", "function": {"name": …, "arguments": …}}`, and the same under other names.
    for field in ["function", "function_call", "tool_call", "tool"] {
        if let Some(Value::Object(inner)) = map.get(field) {
            let id = id_of(map);
            return match one(inner, standing, is_tool) {
                Shape::Calls(calls) => {
                    let named = |call: TextCall| TextCall { id: call.id.or_else(|| id.clone()), ..call };
                    Shape::Calls(calls.into_iter().map(named).collect())
                }
                other => other,
            };
        }
    }
    let Some((name_field, name)) = name_of(map, is_tool) else {
        return by_key(map, standing, is_tool);
    };
    let given = ARGUMENTS.iter().filter(|field| **field != name_field).find_map(|field| map.get(*field));
    let arguments = match given {
        Some(value) => match arguments_of(value) {
            Some(arguments) => arguments,
            None => return Shape::Other,
        },
        None if standing == Standing::Untagged => return Shape::Other,
        // Arguments beside the name.
        None => {
            let beside = |field: &String| field != name_field && !OTHERS.contains(&field.as_str());
            let beside = map.iter().filter(|(field, _)| beside(field));
            beside.map(|(field, value)| (field.clone(), value.clone())).collect()
        }
    };
    let source = map.get("source").and_then(Value::as_str).map(str::to_owned);
    finish(TextCall { id: id_of(map), name, arguments, source }, standing, is_tool)
}

/// `{"get_time": {"timezone": …}}`, only where nothing but calls stands and the tool exists.
fn by_key(map: &Map<String, Value>, standing: Standing, is_tool: &dyn Fn(&str) -> bool) -> Shape {
    let mut fields = map.iter();
    match (fields.next(), fields.next()) {
        (Some((name, Value::Object(arguments))), None) if standing == Standing::Tagged && is_tool(name) => {
            let call = TextCall { id: None, name: name.clone(), arguments: arguments.clone(), source: None };
            finish(call, standing, is_tool)
        }
        _ => Shape::Other,
    }
}

/// A call that was put together, unless it is an example after all.
pub(super) fn finish(call: TextCall, standing: Standing, is_tool: &dyn Fn(&str) -> bool) -> Shape {
    let is_known = is_tool(&call.name);
    if !is_known && (BLANKS.contains(&call.name.as_str()) || is_blank(&call.name)) {
        return Shape::Example;
    }
    if is_schema(&call.arguments) || call.arguments.values().any(|value| value.as_str().is_some_and(is_blank))
    {
        return Shape::Example;
    }
    if !is_known && standing == Standing::Untagged {
        return Shape::Other;
    }
    Shape::Calls(vec![call])
}

/// A value that stands for a value: an ellipsis, or words in angle brackets.
fn is_blank(text: &str) -> bool {
    let text = text.trim();
    if matches!(text, "..." | "…" | "……") {
        return true;
    }
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.');
    // An element without anything else is rather a blank than a document.
    inner.is_some_and(|inner| !inner.is_empty() && inner.len() <= 60 && inner.chars().all(is_word))
}

/// Whether arguments are the description of arguments.
fn is_schema(arguments: &Map<String, Value>) -> bool {
    let is_object = arguments.get("type").and_then(Value::as_str) == Some("object");
    if is_object && arguments.get("properties").is_some_and(Value::is_object) {
        return true;
    }
    let describes = |value: &Value| {
        value.get("type").is_some_and(Value::is_string)
            && value.get("description").is_some_and(Value::is_string)
    };
    !arguments.is_empty() && arguments.values().all(describes)
}

/// The name and the field it stands in: that of a tool that exists, or else the most telling.
fn name_of(map: &Map<String, Value>, is_tool: &dyn Fn(&str) -> bool) -> Option<(&'static str, String)> {
    let named = NAMES.iter().filter_map(|field| {
        let name = clean_name(map.get(*field)?.as_str()?, is_tool);
        (!name.is_empty()).then_some((*field, name))
    });
    let mut first = None;
    for (field, name) in named {
        if is_tool(&name) {
            return Some((field, name));
        }
        first = first.or(Some((field, name)));
    }
    first
}

/// A name without what models add to it.
pub(super) fn clean_name(name: &str, is_tool: &dyn Fn(&str) -> bool) -> String {
    let name = name.trim().trim_matches(['`', '"', '\'', '*']).trim();
    if is_tool(name) {
        return name.to_owned();
    }
    let bare = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let bare = bare.strip_suffix("()").unwrap_or(bare);
    // Some number their calls in the name.
    let numbered = bare.rsplit_once(':').filter(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
    numbered.map_or(bare, |(bare, _)| bare).to_owned()
}

/// Arguments, given as an object, as the text of one, or as nothing.
fn arguments_of(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map.clone()),
        Value::Null => Some(Map::new()),
        Value::Array(items) if items.is_empty() => Some(Map::new()),
        Value::String(text) => arguments_of_text(text),
        _ => None,
    }
}

/// Arguments as text; no text is no arguments.
pub(super) fn arguments_of_text(text: &str) -> Option<Map<String, Value>> {
    if text.trim().is_empty() {
        return Some(Map::new());
    }
    match read_object(text, Brackets::Closed) {
        Some(map) => Some(map),
        // Once more as a string.
        None => match read_value(text, Brackets::Closed).ok()? {
            (Value::String(inner), used) if text.get(used..)?.trim().is_empty() => {
                read_object(&inner, Brackets::Closed)
            }
            (Value::Null, _) => Some(Map::new()),
            _ => None,
        },
    }
}

fn id_of(map: &Map<String, Value>) -> Option<String> {
    ["id", "tool_call_id", "call_id"].iter().find_map(|field| match map.get(*field)? {
        Value::String(id) if !id.trim().is_empty() => Some(id.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
