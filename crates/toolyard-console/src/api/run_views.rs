//! The shapes of the API's answers about one run.

use serde::Deserialize;
use serde_json::Value;

use super::{ArgumentsView, PendingApproval};

/// `GET /runs/ID`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunDetails {
    pub(crate) run: String,
    pub(crate) state: String,
    pub(crate) agent: Option<String>,
    pub(crate) question: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) answer: Option<String>,
    pub(crate) sources: Vec<String>,
    /// What the run changed, line by line.
    pub(crate) receipt: Vec<String>,
    /// What a model says of the answer.
    pub(crate) opinion: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) hint: Option<String>,
    /// The steps of all plans.
    pub(crate) steps: Vec<StepView>,
    pub(crate) pending_approvals: Vec<PendingApproval>,
    pub(crate) unknown_steps: Vec<UnknownStepView>,
    pub(crate) usage: UsageView,
    /// The number of the newest event.
    pub(crate) last_event: Option<i64>,
}

/// A step of a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StepView {
    pub(crate) id: String,
    pub(crate) tool: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) description: String,
    pub(crate) depends_on: Vec<String>,
    pub(crate) state: String,
    pub(crate) started_at: Option<i64>,
    pub(crate) duration_ms: Option<u64>,
    #[serde(flatten)]
    pub(crate) arguments: ArgumentsView,
    pub(crate) output: Value,
    pub(crate) attempts: Vec<AttemptView>,
    pub(crate) verification: Option<VerificationView>,
    pub(crate) error: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) notes: Vec<String>,
}

/// One start of a step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AttemptView {
    pub(crate) started_at: i64,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) error: Option<String>,
}

/// The verdict on a result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VerificationView {
    pub(crate) verified: bool,
    pub(crate) confidence: Option<f64>,
    pub(crate) issues: Vec<String>,
}

/// A step whose outcome is unknown.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct UnknownStepView {
    pub(crate) step: String,
    pub(crate) tool: String,
    pub(crate) source: Option<String>,
    #[serde(flatten)]
    pub(crate) arguments: ArgumentsView,
    pub(crate) started_at: i64,
}

/// Tokens and cost of a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct UsageView {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cost_micros: Option<u64>,
}

/// `GET /runs/ID/log`: events as in the event stream.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EventLog {
    pub(crate) events: Vec<Value>,
}

/// `POST /runs`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StartedRun {
    pub(crate) run: String,
}
