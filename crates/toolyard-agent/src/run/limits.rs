//! Limits on what a run may use, and what it has used.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolyard_model::Usage;

/// Limits of a run. The first one that is reached ends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// Steps over all plans.
    pub steps: usize,
    /// Tool calls.
    pub calls: usize,
    /// Model requests.
    pub model_calls: usize,
    /// Plans after the first.
    pub replans: usize,
    /// Input and output tokens.
    pub tokens: u64,
    /// Cost in millionths of the operator's currency; 0 for no limit.
    pub cost_micros: u64,
    /// Active time; waiting for an approval does not count.
    pub time: Duration,
    /// Calls of the same tool with the same arguments.
    pub identical_calls: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            steps: 200,
            calls: 400,
            model_calls: 60,
            replans: 2,
            tokens: 1_000_000,
            cost_micros: 0,
            time: Duration::from_mins(30),
            identical_calls: 3,
        }
    }
}

/// The limit that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "named after the fields of `RunLimits`, besides the quotas of callers and agents"
)]
pub enum RunLimit {
    Steps,
    Calls,
    ModelCalls,
    Tokens,
    Cost,
    Time,
    IdenticalCalls,
    Quota,
}

/// What a run has used so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunUsage {
    /// Steps over all plans.
    pub steps: usize,
    /// Tool calls.
    pub calls: usize,
    /// Model requests.
    pub model_calls: usize,
    /// Tokens and cost.
    pub model: Usage,
}
