//! The shapes of the API's answers about runs and approvals, as far as pages show them.

use serde::Deserialize;
use serde_json::Value;

use crate::format::pretty_json;

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

/// `GET /runs`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunList {
    pub(crate) runs: Vec<ListedRun>,
    pub(crate) next: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListedRun {
    pub(crate) run: String,
    pub(crate) state: String,
    pub(crate) agent: Option<String>,
    pub(crate) question: Option<String>,
    /// `None` for runs without a conversation, and for those of older versions.
    pub(crate) conversation: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) pending_approvals: u64,
}

/// `GET /approvals`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ApprovalList {
    pub(crate) approvals: Vec<PendingApproval>,
}

/// A tool call that waits for approval.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PendingApproval {
    pub(crate) approval: i64,
    pub(crate) run: String,
    pub(crate) step: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) source: Option<String>,
    /// One line of English with tool, source, effects, arguments and notes.
    pub(crate) text: String,
    /// `None` for runs of older versions, which have no arguments either.
    pub(crate) effects: Option<String>,
    #[serde(flatten)]
    pub(crate) arguments: ArgumentsView,
    pub(crate) notes: Vec<String>,
    pub(crate) requested_at: i64,
}

/// The arguments of a call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ArgumentsView {
    arguments: Option<Value>,
    /// The arguments as text, in place of `arguments`, if they were shortened or have hidden characters; these are escaped.
    arguments_text: Option<String>,
}

impl ArgumentsView {
    /// JSON with indentation, or the text as it is; `None` if the API has no arguments.
    pub(crate) fn shown(&self) -> Option<String> {
        self.arguments.as_ref().map(pretty_json).or_else(|| self.arguments_text.clone())
    }
}
