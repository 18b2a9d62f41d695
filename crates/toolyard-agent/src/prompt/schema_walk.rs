//! Walks over the schemas in a schema, and only over those: what is data in it stays as it is.

use serde_json::{Map, Value};

/// Words whose value is a schema or a list of schemas.
const SCHEMAS: [&str; 17] = [
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
/// Words whose value is a table of schemas by name.
const TABLES: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Visits a schema and all schemas in it, the outer ones first.
pub(super) fn visit(schema: &mut Value, see: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(words) = schema else { return };
    see(words);
    for (word, value) in words.iter_mut() {
        if SCHEMAS.contains(&word.as_str()) {
            match value {
                Value::Array(several) => several.iter_mut().for_each(|inner| visit(inner, see)),
                one => visit(one, see),
            }
        } else if TABLES.contains(&word.as_str())
            && let Value::Object(named) = value
        {
            named.values_mut().for_each(|inner| visit(inner, see));
        }
    }
}
