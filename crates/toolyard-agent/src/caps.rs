//! How much a run may use before it is ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolyard_model::Usage;

/// How much a run may use. Whatever is reached first ends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    /// Steps over all plans.
    pub steps: usize,
    /// Calls of tools.
    pub calls: usize,
    /// Requests to models.
    pub model_calls: usize,
    /// Plans after the first.
    pub replans: usize,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money, in millionths of the operator's currency; 0 for no limit.
    pub cost_micros: u64,
    /// Time in which somebody works on it; waiting for a person does not count.
    pub time: Duration,
    /// Calls of the same tool with the same arguments.
    pub identical: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            steps: 200,
            calls: 400,
            model_calls: 60,
            replans: 2,
            tokens: 1_000_000,
            cost_micros: 0,
            time: Duration::from_mins(30),
            identical: 3,
        }
    }
}

/// The cap that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the caps")]
pub enum Cap {
    Steps,
    Calls,
    ModelCalls,
    Replans,
    Tokens,
    Cost,
    Time,
    Identical,
}

/// What a run used so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Steps over all plans.
    pub steps: usize,
    /// Calls of tools.
    pub calls: usize,
    /// Requests to models.
    pub model_calls: usize,
    /// Tokens and money.
    pub usage: Usage,
    /// Milliseconds in which somebody worked on it.
    pub milliseconds: u64,
}
