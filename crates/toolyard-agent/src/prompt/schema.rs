//! Helpers for JSON Schemas of tool arguments.

use serde_json::{Map, Value, json};
use toolyard_core::RawJson;

use crate::escape;

/// Keywords whose value is a schema or a list of schemas.
const SCHEMA_KEYWORDS: [&str; 17] = [
    "items",
    "prefixItems",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "allOf",
    "anyOf",
    "oneOf",
    "contentSchema",
    "extends",
];
/// Keywords whose value maps names to schemas.
const SCHEMA_MAP_KEYWORDS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Visits a schema and its subschemas, outermost first. Data such as defaults is not visited.
pub(super) fn visit_schemas(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(keywords) = schema else { return };
    visit(keywords);
    for (keyword, value) in keywords.iter_mut() {
        if SCHEMA_KEYWORDS.contains(&keyword.as_str()) {
            match value {
                Value::Array(several) => several.iter_mut().for_each(|inner| visit_schemas(inner, visit)),
                one => visit_schemas(one, visit),
            }
        } else if SCHEMA_MAP_KEYWORDS.contains(&keyword.as_str())
            && let Value::Object(named) = value
        {
            named.values_mut().for_each(|inner| visit_schemas(inner, visit));
        }
    }
}

/// A tool's input schema with `"type": "object"`.
pub(super) fn arguments_schema(schema: &RawJson) -> Value {
    match schema.to_value() {
        Value::Object(mut keywords) => {
            keywords.insert("type".to_owned(), json!("object"));
            Value::Object(keywords)
        }
        _ => json!({"type": "object"}),
    }
}

/// Whether a key or string anywhere in the value contains a control token of a chat template.
pub(super) fn has_control_tokens(value: &Value) -> bool {
    match value {
        Value::String(text) => escape::has_control_token(text),
        Value::Array(items) => items.iter().any(has_control_tokens),
        Value::Object(entries) => {
            entries.iter().any(|(key, value)| escape::has_control_token(key) || has_control_tokens(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
