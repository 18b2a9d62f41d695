//! Converts arguments to the types of a tool's parameters where the intended value is unambiguous.

use serde_json::Value;
use toolyard_core::{Param, ParamType};

/// Converts numbers and lists written as strings, and wraps single values where a list is expected. A value that the parameter
/// takes is returned as it is.
pub(crate) fn coerce_value(value: Value, param: &Param) -> Value {
    match (&param.kind, value) {
        (ParamType::Array, Value::Array(items)) => as_rows(items, param),
        (ParamType::Array, Value::String(text)) => match parse_composite(&text, '[') {
            Some(Value::Array(items)) => as_rows(items, param),
            _ => as_rows(vec![Value::String(text)], param),
        },
        (ParamType::Array, value @ (Value::Number(_) | Value::Bool(_) | Value::Object(_))) => {
            as_rows(vec![value], param)
        }
        (ParamType::Object, Value::String(text)) => {
            parse_composite(&text, '{').unwrap_or(Value::String(text))
        }
        (ParamType::Number | ParamType::Integer, Value::String(text)) => {
            parse_number(&text).unwrap_or(Value::String(text))
        }
        (ParamType::Union(kinds), Value::String(text)) if !kinds.contains(&ParamType::String) => {
            let list = parse_composite(&text, '[').filter(|_| kinds.contains(&ParamType::Array));
            let single = || parse_number(&text).filter(|_| kinds.contains(&ParamType::Number));
            list.or_else(single).unwrap_or(Value::String(text))
        }
        (ParamType::Boolean, Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text),
        },
        (ParamType::String, value @ (Value::Number(_) | Value::Bool(_) | Value::Object(_))) => {
            Value::String(value.to_string())
        }
        (
            ParamType::String | ParamType::Number | ParamType::Integer | ParamType::Boolean,
            Value::Array(mut items),
        ) => match (items.pop(), items.is_empty()) {
            (Some(only @ (Value::String(_) | Value::Number(_) | Value::Bool(_))), true) => {
                coerce_value(only, param)
            }
            (last, _) => {
                items.extend(last);
                Value::Array(items)
            }
        },
        (_, value) => value,
    }
}

/// A list; where a list of lists is expected and no item is a list, the items form one row.
fn as_rows(items: Vec<Value>, param: &Param) -> Value {
    let expects_rows = param.items.as_deref().is_some_and(|inner| inner.kind == ParamType::Array);
    if expects_rows && !items.is_empty() && !items.iter().any(Value::is_array) {
        return Value::Array(vec![Value::Array(items)]);
    }
    Value::Array(items)
}

fn parse_composite(text: &str, begin: char) -> Option<Value> {
    text.trim_start().starts_with(begin).then(|| serde_json::from_str(text).ok()).flatten()
}

fn parse_number(text: &str) -> Option<Value> {
    serde_json::from_str::<serde_json::Number>(text.trim()).ok().map(Value::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use toolyard_core::params;

    use super::*;
    use crate::reference::any_value;

    fn coerce_one(kind: &Value, value: Value) -> Value {
        let params = params(&json!({"type": "object", "properties": {"a": kind}, "required": ["a"]}));
        coerce_value(value, &params[0])
    }

    #[test]
    fn only_unambiguous_values_are_converted() {
        let rows = json!({"type": "array", "items": {"type": "array", "items": {}}});
        assert_eq!(coerce_one(&rows, json!(5)), json!([[5]]));
        assert_eq!(coerce_one(&rows, json!([1, 2])), json!([[1, 2]]));
        assert_eq!(coerce_one(&rows, json!("[[1], [2]]")), json!([[1], [2]]));
        assert_eq!(coerce_one(&rows, json!("total")), json!([["total"]]));
        assert_eq!(coerce_one(&rows, json!([])), json!([]));
        assert_eq!(coerce_one(&json!({"type": "integer"}), json!(" 12 ")), json!(12));
        assert_eq!(coerce_one(&json!({"type": "integer"}), json!("twelve")), json!("twelve"));
        assert_eq!(coerce_one(&json!({"type": "number"}), json!([7])), json!(7));
        assert_eq!(coerce_one(&json!({"type": "number"}), json!([7, 8])), json!([7, 8]));
        assert_eq!(coerce_one(&json!({"type": "boolean"}), json!("True")), json!(true));
        assert_eq!(coerce_one(&json!({"type": "string"}), json!(18420)), json!("18420"));
        assert_eq!(coerce_one(&json!({"type": "object"}), json!("{\"a\": 1}")), json!({"a": 1}));
        assert_eq!(coerce_one(&json!({}), json!("[1]")), json!("[1]"));
        assert_eq!(coerce_one(&json!({"type": ["string", "number"]}), json!("5")), json!("5"));
        assert_eq!(coerce_one(&json!({"type": ["array", "number"]}), json!("[5]")), json!([5]));
        assert_eq!(coerce_one(&json!({"type": ["array", "number"]}), json!("5")), json!(5));
    }

    proptest! {
        #[test]
        fn coercion_never_panics_and_is_idempotent(value in any_value(), kind in prop::sample::select(vec!["array", "object", "number", "integer", "boolean", "string", "null"])) {
            let once = coerce_one(&json!({"type": kind, "items": {"type": "array"}}), value);
            prop_assert_eq!(coerce_one(&json!({"type": kind, "items": {"type": "array"}}), once.clone()), once);
        }
    }
}
