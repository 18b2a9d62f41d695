//! `[approvals]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_agent::{ApprovalRules, OpenWorldRule};

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
    /// What happens to a call that may pass non-public data to systems outside, such as a web search for something that was
    /// read from a file. `ask` if neither the operator nor a trusted project says otherwise.
    pub open_world: Option<OpenWorldSetting>,
    /// Tools whose results are public, besides `search_web`: what an agent read from them may be passed outside.
    pub public: Vec<String>,
}

/// What happens to a call that may pass non-public data to systems outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpenWorldSetting {
    /// It needs approval, unless `allow` names the tool.
    Ask,
    /// It is treated like any other call.
    Allow,
}

impl ApprovalSettings {
    /// The rules for agents.
    pub fn rules(&self) -> ApprovalRules {
        let open_world = match self.open_world {
            None | Some(OpenWorldSetting::Ask) => OpenWorldRule::Ask,
            Some(OpenWorldSetting::Allow) => OpenWorldRule::Allow,
        };
        let Self { allow, ask, deny, public, .. } = self.clone();
        ApprovalRules { deny, ask, allow, open_world, public }
    }
}
