//! `[approvals]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_agent::ApprovalRules;

/// Which calls agents may make without asking a person. Tools that only read are called, all others asked about, unless
/// one of these lists says otherwise: names, patterns such as `read_*`, or either with a source, such as `*@excel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// Called without asking.
    pub allow: Vec<String>,
    /// Always asked about, even if they only read.
    pub ask: Vec<String>,
    /// Never called.
    pub deny: Vec<String>,
}

impl ApprovalSettings {
    /// The rules; what is denied is denied, whatever else is said, and what is asked about is not allowed by another list.
    pub fn rules(&self) -> ApprovalRules {
        ApprovalRules { deny: self.deny.clone(), ask: self.ask.clone(), allow: self.allow.clone() }
    }

    /// These and others: neither takes back what the other denies.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        self.allow.extend(others.allow.iter().cloned());
        self.ask.extend(others.ask.iter().cloned());
        self.deny.extend(others.deny.iter().cloned());
        self
    }
}
