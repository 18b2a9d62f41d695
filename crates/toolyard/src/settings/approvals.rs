//! `[approvals]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_agent::ApprovalRules;

/// Which tool calls agents may make without approval. By default, read-only tools run and all others need approval. Entries
/// are names, patterns such as `read_*`, or either with a source, such as `*@excel`. `deny` wins over `ask`, `ask` over
/// `allow`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// Runs without approval.
    pub allow: Vec<String>,
    /// Always needs approval, even if read-only.
    pub ask: Vec<String>,
    /// Never runs: neither for agents nor for MCP clients nor with `toolyard call`.
    pub deny: Vec<String>,
}

impl ApprovalSettings {
    /// The rules for agents.
    pub fn rules(&self) -> ApprovalRules {
        ApprovalRules { deny: self.deny.clone(), ask: self.ask.clone(), allow: self.allow.clone() }
    }
}
