//! The JSON value of a tool's output.

use serde_json::Value;
use toolyard_core::RawJson;

/// The value of a step: the structured result, else the text parsed as JSON, else the text. A result whose only field is
/// `result` is unwrapped.
pub(crate) fn step_value(structured: Option<&RawJson>, text: &str) -> Value {
    let Some(structured) = structured else { return parse_or_text(text) };
    match structured.to_value() {
        Value::Object(mut entries) if entries.len() == 1 && entries.contains_key("result") => {
            match entries.remove("result") {
                Some(Value::String(text)) => parse_composite(text),
                Some(other) => other,
                None => Value::Null,
            }
        }
        // Missing, or nested too deeply to be parsed.
        Value::Null => parse_or_text(text),
        other => other,
    }
}

fn parse_or_text(text: &str) -> Value {
    let parsed = serde_json::from_str(text.trim()).ok().or_else(|| parse_python(text));
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A list or an object as Python prints it, such as `[{'name': 'Ann', 'paid': True}]`: servers written in Python return such
/// text. None if anything else is in the text.
fn parse_python(text: &str) -> Option<Value> {
    let text = text.trim();
    let is_enclosed =
        (text.starts_with("[{") && text.ends_with("}]")) || (text.starts_with("{'") && text.ends_with('}'));
    if !is_enclosed {
        return None;
    }
    serde_json::from_str(&json_from_python(text)?).ok()
}

/// Python's literals in the notation of JSON; none if a string does not end.
fn json_from_python(text: &str) -> Option<String> {
    let mut json = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let used = if matches!(first, '\'' | '"') {
            let inside = rest.get(1..)?;
            let mut is_escaped = false;
            let length = inside.find(|c: char| {
                let is_end = c == first && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                is_end
            })?;
            // JSON escapes double quotes, and no single ones.
            let plain = inside.get(..length)?.replace("\\'", "'");
            let quoted = if first == '\'' { plain.replace('"', "\\\"") } else { plain };
            json.push('"');
            json.push_str(&quoted);
            json.push('"');
            length + 2
        } else if first.is_ascii_alphabetic() {
            let length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            json.push_str(match rest.get(..length)? {
                "True" => "true",
                "False" => "false",
                "None" => "null",
                other => other,
            });
            length
        } else {
            json.push(first);
            first.len_utf8()
        };
        rest = rest.get(used..)?;
    }
    Some(json)
}

/// A string inside JSON stays a string unless it is a whole object or list.
fn parse_composite(text: String) -> Value {
    if !text.trim_start().starts_with(['{', '[']) {
        return Value::String(text);
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lone_result_field_is_unwrapped() {
        let raw = |value: Value| RawJson::from_value(&value);
        let value_of = |structured: Value, text: &str| step_value(Some(&raw(structured)), text);
        assert_eq!(value_of(json!({"result": "{\"cells\": [1]}"}), "x"), json!({"cells": [1]}));
        assert_eq!(value_of(json!({"result": [1]}), "x"), json!([1]));
        assert_eq!(
            value_of(json!({"result": "12"}), "x"),
            json!("12"),
            "a scalar inside a string stays a string"
        );
        assert_eq!(value_of(json!({"result": 12, "exact": true}), "x"), json!({"result": 12, "exact": true}));
        assert_eq!(step_value(None, " [1, 2] "), json!([1, 2]));
        assert_eq!(step_value(None, "12"), json!(12));
        assert_eq!(step_value(None, "plain"), json!("plain"));
    }

    #[test]
    fn a_list_that_python_printed_is_parsed() {
        let rows = json!([{"name": "Ann", "paid": true, "sum": null}, {"name": "O'Neil", "paid": false, "sum": 4.5}]);
        let text =
            r#"[{'name': 'Ann', 'paid': True, 'sum': None}, {'name': "O'Neil", 'paid': False, 'sum': 4.5}]"#;
        assert_eq!(step_value(None, text), rows);
        for other in
            ["[see below]", "{'a': 1} and more", "['a', 'b'", "{name}", "[{'a': datetime(2026, 1, 1)}]"]
        {
            assert_eq!(step_value(None, other), json!(other), "{other}");
        }
    }
}
