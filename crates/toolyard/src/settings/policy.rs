//! `[policy]` as plain data.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Policies: who may call which tool with which arguments. They hold for all callers, beside the patterns of `[approvals]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Files with policies in the language Cedar, relative to this file.
    pub files: Vec<PathBuf>,
    /// What happens to calls that no policy and no pattern is about.
    pub default: PolicyDefault,
}

/// What happens to calls that no policy and no pattern is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyDefault {
    /// They are allowed; agents need approval for tools that are not read-only.
    #[default]
    Allow,
    /// They are denied: only what a `permit` policy or a pattern of `allow` names can be called.
    Deny,
}
