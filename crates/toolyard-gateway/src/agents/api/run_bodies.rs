//! Bodies of requests about runs, and of the responses.

use serde::{Deserialize, Serialize};
use toolyard_core::{Resolution, StepRecord};
use utoipa::ToSchema;

use super::{
    approval_handlers::PendingApproval,
    chat_message::ChatMessage,
    events::{ApiPlannedStep, ApiResolution, ApiRunEvent, ApiUsage},
    run_state::ApiRunState,
    run_steps::RunStep,
};

/// The body of `POST /runs`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartRunBody {
    /// What the agent shall do.
    pub(super) question: String,
    /// The agent; `assistant` by default.
    #[serde(default)]
    pub(super) agent: Option<String>,
    /// Earlier messages of a conversation that the client keeps.
    #[serde(default)]
    pub(super) history: Vec<ChatMessage>,
    /// Name of a conversation that the gateway keeps.
    #[serde(default)]
    pub(super) conversation: Option<String>,
    /// Make a plan and call no tool.
    #[serde(default)]
    pub(super) plan_only: bool,
    /// Simulate calls of tools that change something.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// A run that was started.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StartedRun {
    pub(super) run: String,
    pub(super) state: ApiRunState,
    /// Where its events are.
    pub(super) events: String,
}

/// The body of `POST /runs/ID/resolve`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolutionBody {
    /// The step as `unknown_steps` names it: from the second attempt on with its number, such as `write#2`.
    pub(super) step: String,
    /// Whether the call took effect.
    #[schema(value_type = ApiResolution)]
    pub(super) outcome: Resolution,
}

/// A run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunDetails {
    pub(super) run: String,
    pub(super) state: ApiRunState,
    pub(super) agent: Option<String>,
    pub(super) question: Option<String>,
    pub(super) conversation: Option<String>,
    pub(super) created_at: i64,
    pub(super) answer: Option<String>,
    /// The tools and sources that the answer is based on.
    pub(super) sources: Vec<String>,
    /// Why there is no answer.
    pub(super) message: Option<String>,
    /// What to do about it.
    pub(super) hint: Option<String>,
    /// The latest plan; its steps are those of the event `planned`.
    pub(super) plan: Option<RunPlan>,
    /// The steps of all plans in their current state.
    pub(super) steps: Vec<RunStep>,
    pub(super) pending_approvals: Vec<PendingApproval>,
    pub(super) unknown_steps: Vec<UnknownStep>,
    /// Tokens and cost.
    pub(super) usage: ApiUsage,
    pub(super) event_count: usize,
}

/// A plan of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunPlan {
    pub(super) steps: Vec<ApiPlannedStep>,
}

/// Events of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunEventLog {
    /// Oldest first, as in the event stream; see `/api/v1/events.schema.json`.
    #[schema(value_type = Vec<Object>)]
    pub(super) events: Vec<ApiRunEvent>,
    /// To be given back as `after`; null if no further events are logged so far.
    pub(super) next: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ResolvedStep {
    pub(super) run: String,
    pub(super) step: String,
    #[schema(value_type = ApiResolution)]
    pub(super) outcome: Resolution,
    /// Whether this gateway continues the run.
    pub(super) resumed: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CancelledRun {
    pub(super) run: String,
    pub(super) cancelled: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UnknownSteps {
    /// Oldest first.
    pub(super) steps: Vec<UnknownStep>,
    /// To be given back as `after`; null if this is the last page.
    pub(super) next: Option<String>,
}

/// A step whose outcome is unknown.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UnknownStep {
    run: String,
    /// The id of the step; from the second attempt on with the number of the attempt, such as `write#2`.
    step: String,
    tool: String,
    source: Option<String>,
    /// The arguments, with secrets redacted.
    arguments: String,
    started_at: i64,
}

impl UnknownStep {
    /// Its place in the list of all.
    pub(super) fn cursor(&self) -> String {
        // Padded, so that the order of texts is that of times.
        format!("{:020}/{}/{}", self.started_at.max(0), self.run, self.step)
    }

    pub(super) fn of(step: &StepRecord) -> Self {
        Self {
            run: step.run.to_string(),
            step: step.step.clone(),
            tool: step.tool.clone(),
            source: step.source.as_ref().map(ToString::to_string),
            arguments: step.redacted_arguments.clone(),
            started_at: step.started_at,
        }
    }
}
