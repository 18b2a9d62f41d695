//! The parameters of a tool, read from its input schema.

use serde_json::Value;
use toolyard_core::{Param, RawJson, params};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ToolParams {
    pub(super) params: Vec<Param>,
    /// Whether the tool accepts further, undeclared parameters.
    pub(super) accepts_undeclared: bool,
}

impl ToolParams {
    pub(super) fn from_schema(schema: &RawJson) -> Self {
        let schema = schema.to_value();
        let params = params(&schema);
        let allows = |keyword: &str| schema.get(keyword).is_some_and(|value| *value != Value::Bool(false));
        let accepts_undeclared =
            params.is_empty() || allows("additionalProperties") || allows("patternProperties");
        Self { params, accepts_undeclared }
    }

    pub(super) fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }

    pub(super) fn required(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| param.required)
    }
}
