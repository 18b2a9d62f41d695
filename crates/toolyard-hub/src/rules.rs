//! The operator's word on routing, as plain data.

use std::collections::HashMap;

use toolyard_core::{SourceId, SourceKind, ToolHints};

/// What the operator decided about names that several sources share, and about tools' effects.
#[derive(Debug, Clone, Default)]
pub struct RoutingRules {
    /// Which kind of source goes first where nothing else decides.
    pub prefer: Prefer,
    /// The source that answers for a tool name before all others.
    pub pins: HashMap<String, SourceId>,
    /// Sources that may stand in for one another for a tool name, trusted or not.
    pub equivalent: HashMap<String, Vec<SourceId>>,
    /// Effects of single tools, by source and tool name; they outweigh what the tool declares.
    pub hints: HashMap<SourceId, HashMap<String, ToolHints>>,
}

/// Which kind of source goes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prefer {
    /// Native 0, skill 1, MCP 2: a server cannot capture a native name.
    #[default]
    NativeFirst,
    /// The same turned round.
    McpFirst,
}

impl Prefer {
    /// 0, 1 or 2; smaller is preferred.
    pub fn priority(self, kind: SourceKind) -> u8 {
        match self {
            Self::NativeFirst => kind.priority(),
            Self::McpFirst => 2 - kind.priority(),
        }
    }
}

impl RoutingRules {
    /// Whether this source was put first for this name.
    pub fn pinned(&self, tool: &str, source: &SourceId) -> bool {
        self.pins.get(tool) == Some(source)
    }

    /// Whether the operator counts this source among the equals for this name.
    pub fn declared_equal(&self, tool: &str, source: &SourceId) -> bool {
        self.equivalent.get(tool).is_some_and(|sources| sources.contains(source))
    }

    /// What the operator said about one tool's effects.
    pub fn hints_for(&self, tool: &str, source: &SourceId) -> ToolHints {
        self.hints.get(source).and_then(|tools| tools.get(tool)).copied().unwrap_or_default()
    }
}
