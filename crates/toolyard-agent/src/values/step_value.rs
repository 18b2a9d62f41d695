//! The JSON value of a tool's output.

use serde_json::Value;
use toolyard_core::RawJson;
use toolyard_model::lenient_json::parse_prefix;

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
    let (value, used) = parse_prefix(text).ok().filter(|_| is_enclosed)?;
    (used == text.len()).then_some(value)
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
