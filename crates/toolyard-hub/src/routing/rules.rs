//! Routing settings of the operator.

use std::collections::HashMap;

use toolyard_core::{SourceId, SourceKind, ToolHints, ToolPattern};

/// How the operator resolves shared names, and which effects tools have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoutingRules {
    /// Preferred kind of source.
    pub prefer: SourcePreference,
    /// Pinned source per tool name.
    pub pins: HashMap<String, SourceId>,
    /// Sources declared equivalent per tool name, trusted or not.
    pub equivalent: HashMap<String, Vec<SourceId>>,
    /// Hints by source and tool name; they override what the tool declares.
    pub hints: HashMap<SourceId, HashMap<String, ToolHints>>,
    /// Tools that are never called for any caller, as [`ToolPattern`]s.
    pub deny: Vec<String>,
}

/// Preferred kind of source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourcePreference {
    /// Native 0, skill 1, MCP 2: a server cannot capture a native name.
    #[default]
    NativeFirst,
    /// MCP 0, skill 1, native 2.
    McpFirst,
}

impl SourcePreference {
    /// 0, 1 or 2; smaller is preferred.
    pub fn priority(self, kind: SourceKind) -> u8 {
        match self {
            Self::NativeFirst => kind.priority(),
            Self::McpFirst => 2 - kind.priority(),
        }
    }
}

impl RoutingRules {
    /// Whether this source is pinned for this name.
    pub fn is_pinned(&self, tool: &str, source: &SourceId) -> bool {
        self.pins.get(tool) == Some(source)
    }

    /// Whether this source is declared equivalent for this name.
    pub fn is_declared_equivalent(&self, tool: &str, source: &SourceId) -> bool {
        self.equivalent.get(tool).is_some_and(|sources| sources.contains(source))
    }

    /// Whether calls of this tool of this source are denied.
    pub fn is_denied(&self, tool: &str, source: &SourceId) -> bool {
        self.deny.iter().any(|pattern| ToolPattern::parse(pattern).matches(tool, source.as_str()))
    }

    /// The operator's hints for one tool.
    pub fn hints_for(&self, tool: &str, source: &SourceId) -> ToolHints {
        self.hints.get(source).and_then(|tools| tools.get(tool)).copied().unwrap_or_default()
    }
}
