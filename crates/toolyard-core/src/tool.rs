//! What a tool is: a description a model can read, and something that answers calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    BoxFuture, CallContext, Capability, Param, RawJson, ToolCallRequest, ToolError, ToolHints, ToolOutput,
    schema::params,
};

/// Anything that can be called: a native function, a skill, a tool of an MCP server.
///
/// The returned future must be safe to drop at any moment: that is how a call is cancelled.
pub trait Tool: Send + Sync {
    /// The tool's description. It does not change while the tool is registered.
    fn spec(&self) -> &ToolSpec;

    /// Carries out one call. Arguments were checked against the schema already.
    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// A tool's description, in the JSON form that MCP uses for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolSpec {
    /// The bare name by which a model calls it.
    pub name: Arc<str>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does and when to use it.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments, kept as it came.
    #[serde(default = "any_object")]
    pub input_schema: RawJson,
    /// The JSON Schema of its structured results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// What the tool says about its own effects; see [`crate::EffectiveHints`] for what is believed.
    #[serde(default, rename = "annotations", skip_serializing_if = "ToolHints::is_empty")]
    pub hints: ToolHints,
    /// Capabilities its author names; those found in name and description are added at registration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
    /// No capabilities are looked for in its name and description.
    #[serde(skip)]
    pub untagged: bool,
    /// The definition as its server sent it, byte for byte; none for tools that were not sent.
    #[serde(skip)]
    pub raw: Option<RawJson>,
}

impl ToolSpec {
    /// A tool that takes any object and says nothing about its effects.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: any_object(),
            output_schema: None,
            hints: ToolHints::default(),
            capabilities: Vec::new(),
            untagged: false,
            raw: None,
        }
    }

    /// The same tool with the JSON Schema of its arguments.
    #[must_use]
    pub fn with_input_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.input_schema = schema.into();
        self
    }

    /// The same tool with its declared effects.
    #[must_use]
    pub fn with_hints(mut self, hints: ToolHints) -> Self {
        self.hints = hints;
        self
    }

    /// The same tool with one more declared capability.
    #[must_use]
    pub fn with_capability(mut self, capability: impl Into<Capability>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// The same tool, whose name and description say nothing about its capabilities; declared ones stay.
    #[must_use]
    pub fn without_capabilities(mut self) -> Self {
        self.untagged = true;
        self
    }

    /// The same tool with the definition it was read from.
    #[must_use]
    pub fn with_raw(mut self, raw: RawJson) -> Self {
        self.raw = Some(raw);
        self
    }

    /// The arguments as parameters that can be shown to a person or a model.
    pub fn params(&self) -> Vec<Param> {
        params(&self.input_schema.to_value())
    }
}

fn any_object() -> RawJson {
    RawJson::from_value(&serde_json::json!({"type": "object"}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_kept_as_it_came() {
        let text = r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"b":{},"a":{"default":1.50}}},"annotations":{"readOnlyHint":true}}"#;
        let spec: ToolSpec = serde_json::from_str(text).unwrap();
        assert_eq!(spec.hints.read_only, Some(true));
        assert_eq!(serde_json::to_string(&spec).unwrap(), text);
    }

    #[test]
    fn only_code_can_say_that_a_tool_is_untagged() {
        let spec: ToolSpec = serde_json::from_str(r#"{"name":"t","untagged":true}"#).unwrap();
        assert!(!spec.untagged);
        let spec = spec.without_capabilities();
        assert!(spec.untagged && !serde_json::to_string(&spec).unwrap().contains("untagged"));
    }
}
