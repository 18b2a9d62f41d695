//! Patterns of tools: the simple rules of `[approvals]`.

use std::sync::Arc;

use toolyard_core::{PolicyTool, ToolPattern};

/// Tools by name and source, as [`ToolPattern`]s. They hold for all callers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatternRules {
    /// May be called without an approval.
    pub allow: Vec<String>,
    /// Need an approval.
    pub ask: Vec<String>,
    /// Must not be called.
    pub deny: Vec<String>,
}

/// The first pattern of a list that matches, as it is named in decisions.
pub(crate) fn first_match(list: &str, patterns: &[String], tool: &PolicyTool) -> Option<Arc<str>> {
    let matches = |pattern: &&String| ToolPattern::parse(pattern).matches(&tool.name, tool.source.as_str());
    patterns.iter().find(matches).map(|pattern| format!("{list}: {pattern}").into())
}
