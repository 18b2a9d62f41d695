//! The parameters of a tool, read from its input schema.

use std::collections::HashSet;

use serde_json::Value;
use toolyard_core::{Param, RawJson, params};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ToolParams {
    pub(super) params: Vec<Param>,
    /// Whether the tool accepts further, undeclared parameters.
    pub(super) accepts_undeclared: bool,
    /// The parameters that may be null, which [`Param`] does not tell.
    nullable: HashSet<String>,
}

impl ToolParams {
    pub(super) fn from_schema(schema: &RawJson) -> Self {
        let schema = schema.to_value();
        let params = params(&schema);
        let allows = |keyword: &str| schema.get(keyword).is_some_and(|value| *value != Value::Bool(false));
        let accepts_undeclared =
            params.is_empty() || allows("additionalProperties") || allows("patternProperties");
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let nullable = properties.filter(|(_, property)| may_be_null(property)).map(|(name, _)| name.clone());
        Self { params, accepts_undeclared, nullable: nullable.collect() }
    }

    pub(super) fn takes_null(&self, name: &str) -> bool {
        self.nullable.contains(name)
    }

    pub(super) fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }

    pub(super) fn required(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| param.required)
    }
}

/// Whether a schema permits null, or may do so: references are not followed.
fn may_be_null(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return true };
    let is_null = |kind: &Value| kind == "null";
    let choices = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(*keyword)?.as_array());
    match (schema.get("type"), schema.get("enum").and_then(Value::as_array), choices) {
        (Some(Value::Array(kinds)), ..) => kinds.iter().any(is_null),
        (Some(kind), ..) => is_null(kind),
        (None, Some(values), _) => values.contains(&Value::Null),
        (None, None, Some(choices)) => choices.iter().any(may_be_null),
        (None, None, None) => !schema.contains_key("const"),
    }
}
