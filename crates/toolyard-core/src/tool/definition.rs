//! The [`Tool`] trait, the definition of a tool, [`ToolSpec`], and all tools of a source, [`SourceTools`].

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    BoxFuture, CallContext, CallerIdentity, Capability, NameClaim, Param, RawJson, SourceInfo,
    ToolCallRequest, ToolError, ToolHints, ToolOutput, params,
};

/// A tool: a native function, a skill, or a tool of an MCP server.
///
/// The future of a call must be safe to drop at any time: that is how a call is cancelled.
pub trait Tool: Send + Sync {
    /// The tool's definition. It does not change while the tool is registered.
    fn spec(&self) -> &ToolSpec;

    /// Executes one call. The arguments are already validated against the schema.
    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// The claim of the source on the bare name of the tool; `None` if its kind and its registration decide.
    fn name_claim(&self) -> Option<&NameClaim> {
        None
    }

    /// Whether calls of this caller go to an instance of the source that no other caller uses. Their failures say nothing about
    /// the source as a whole, so its circuit breaker does not count them.
    fn is_isolated(&self, identity: Option<&CallerIdentity>) -> bool {
        let _ = identity;
        false
    }

    /// Whether the source may remember something between two calls. In a cluster, one process has the session with such a source,
    /// and all others send their calls there.
    fn is_stateful(&self) -> bool {
        false
    }

    /// Whether the tool works on the conversation that a call belongs to ([`Caller::conversation`](crate::Caller::conversation)).
    /// It is not offered to callers without one.
    fn needs_conversation(&self) -> bool {
        false
    }
}

/// A tool that its source offers and that may not be called until a user approves its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineNotice {
    /// The name of the tool.
    pub tool: String,
    /// Why it is quarantined.
    pub reason: String,
}

/// All tools of one source, as they are registered.
pub struct SourceTools {
    /// The source.
    pub source: SourceInfo,
    /// Its tools that may be called.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Its tools that await approval.
    pub quarantined: Vec<QuarantineNotice>,
}

impl fmt::Debug for SourceTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceTools")
            .field("source", &self.source)
            .field("tools", &self.tools.len())
            .field("quarantined", &self.quarantined)
            .finish()
    }
}

/// The definition of a tool, in MCP's JSON form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[must_use]
pub struct ToolSpec {
    /// The name that models call it by.
    pub name: Arc<str>,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does and when to use it.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments, unchanged.
    #[serde(default = "any_object")]
    pub input_schema: RawJson,
    /// The JSON Schema of its structured results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// Declared effects; [`crate::EffectiveHints`] are the ones that count.
    #[serde(default, rename = "annotations", skip_serializing_if = "ToolHints::is_empty")]
    pub hints: ToolHints,
    /// Declared capabilities; those inferred from name and description are added at registration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
    /// Whether keywords in its name and description add no capabilities.
    #[serde(skip)]
    pub declared_capabilities_only: bool,
    /// The definition exactly as its server sent it, if a server did.
    #[serde(skip)]
    pub raw: Option<RawJson>,
}

impl ToolSpec {
    /// A tool that accepts any object and declares no effects.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: any_object(),
            output_schema: None,
            hints: ToolHints::default(),
            capabilities: Vec::new(),
            declared_capabilities_only: false,
            raw: None,
        }
    }

    /// Sets the JSON Schema of the arguments.
    pub fn with_input_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.input_schema = schema.into();
        self
    }

    /// Sets the declared effects.
    pub fn with_hints(mut self, hints: ToolHints) -> Self {
        self.hints = hints;
        self
    }

    /// Adds a declared capability.
    pub fn with_capability(mut self, capability: impl Into<Capability>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// Keeps only declared capabilities: none are inferred from name and description.
    pub fn without_inferred_capabilities(mut self) -> Self {
        self.declared_capabilities_only = true;
        self
    }

    /// Sets the definition that the server sent.
    pub fn with_raw(mut self, raw: RawJson) -> Self {
        self.raw = Some(raw);
        self
    }

    /// The parameters of the tool, for display to people and models.
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
    fn the_schema_stays_unchanged() {
        let text = r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"b":{},"a":{"default":1.50}}},"annotations":{"readOnlyHint":true}}"#;
        let spec: ToolSpec = serde_json::from_str(text).unwrap();
        assert_eq!(spec.hints.read_only, Some(true));
        assert_eq!(serde_json::to_string(&spec).unwrap(), text);
    }

    #[test]
    fn untagged_cannot_be_set_by_json() {
        let spec: ToolSpec =
            serde_json::from_str(r#"{"name":"t","declared_capabilities_only":true}"#).unwrap();
        assert!(!spec.declared_capabilities_only);
        let spec = spec.without_inferred_capabilities();
        assert!(
            spec.declared_capabilities_only
                && !serde_json::to_string(&spec).unwrap().contains("declared_capabilities_only")
        );
    }
}
