//! Which calls may be made without asking a person: pure rules over a tool and its effective hints.

use toolyard_core::{EffectiveHints, ToolPattern};

use crate::Permission;

/// Rules on calls. What is denied is denied, whatever else is said; then asked, then allowed; then the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Tools that are never called: names, patterns with `*`, either with `@SOURCE`.
    pub deny: Vec<String>,
    /// Tools that are always asked about.
    pub ask: Vec<String>,
    /// Tools that are called without asking.
    pub allow: Vec<String>,
}

impl ApprovalRules {
    /// Whether a call may be made. Without a rule, tools that only read are allowed and all others asked about.
    pub fn permission(&self, tool: &str, source: &str, hints: EffectiveHints) -> Permission {
        let fits = |patterns: &[String]| {
            patterns.iter().any(|pattern| ToolPattern::read(pattern).fits(tool, source))
        };
        if fits(&self.deny) {
            Permission::Deny
        } else if fits(&self.ask) {
            Permission::Ask
        } else if fits(&self.allow) || hints.read_only {
            Permission::Allow
        } else {
            Permission::Ask
        }
    }
}
