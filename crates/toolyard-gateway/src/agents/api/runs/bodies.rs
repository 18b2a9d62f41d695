//! Bodies of requests about runs, and of the responses.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard_core::{Resolution, StepRecord};
use utoipa::ToSchema;

use super::{
    approvals::PendingApproval,
    arguments::RecordedArguments,
    events::{ApiEffect, ApiPlannedStep, ApiResolution, ApiReview, ApiRunEvent, ApiUsage},
    state::ApiRunState,
    steps::RunStep,
};
use crate::agents::api::chat_message::ChatMessage;

/// The body of `POST /runs`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::agents::api) struct StartRunBody {
    /// What the agent shall do.
    pub(in crate::agents::api) question: String,
    /// The agent; `assistant` by default.
    #[serde(default)]
    pub(in crate::agents::api) agent: Option<String>,
    /// Earlier messages of a conversation that the client keeps.
    #[serde(default)]
    pub(in crate::agents::api) history: Vec<ChatMessage>,
    /// Name of a conversation that the gateway keeps.
    #[serde(default)]
    pub(in crate::agents::api) conversation: Option<String>,
    /// Make a plan and call no tool.
    #[serde(default)]
    pub(in crate::agents::api) plan_only: bool,
    /// Simulate calls of tools that change something.
    #[serde(default)]
    pub(in crate::agents::api) dry_run: bool,
}

/// A run that was started.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct StartedRun {
    pub(in crate::agents::api) run: String,
    pub(in crate::agents::api) state: ApiRunState,
    /// Where its events are.
    pub(in crate::agents::api) events: String,
}

/// The body of `POST /unknown-steps`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::agents::api) struct ResolutionBody {
    /// The id of the run.
    pub(in crate::agents::api) run: String,
    /// The step as the list names it: from the second attempt on with its number, such as `write#2`.
    pub(in crate::agents::api) step: String,
    /// Whether the call took effect.
    #[schema(value_type = ApiResolution)]
    pub(in crate::agents::api) outcome: Resolution,
}

/// A run.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct RunDetails {
    pub(in crate::agents::api) run: String,
    pub(in crate::agents::api) state: ApiRunState,
    pub(in crate::agents::api) agent: Option<String>,
    pub(in crate::agents::api) question: Option<String>,
    pub(in crate::agents::api) conversation: Option<String>,
    pub(in crate::agents::api) created_at: i64,
    pub(in crate::agents::api) answer: Option<String>,
    /// The tools and sources that the answer is based on.
    pub(in crate::agents::api) sources: Vec<String>,
    /// The receipt: what became of every planned call of a tool that may change something.
    pub(in crate::agents::api) effects: Vec<ApiEffect>,
    /// What a model says of the answer: an opinion, which decides nothing.
    pub(in crate::agents::api) review: Option<ApiReview>,
    /// The receipt in words, a line per effect, in the language of the question; empty while the run goes on.
    pub(in crate::agents::api) receipt: Vec<String>,
    /// The review in words.
    pub(in crate::agents::api) opinion: Option<String>,
    /// Why there is no answer.
    pub(in crate::agents::api) message: Option<String>,
    /// What to do about it.
    pub(in crate::agents::api) hint: Option<String>,
    /// The latest plan; its steps are those of the event `planned`.
    pub(in crate::agents::api) plan: Option<RunPlan>,
    /// The steps of all plans in their current state.
    pub(in crate::agents::api) steps: Vec<RunStep>,
    pub(in crate::agents::api) pending_approvals: Vec<PendingApproval>,
    pub(in crate::agents::api) unknown_steps: Vec<UnknownStep>,
    /// Tokens and cost.
    pub(in crate::agents::api) usage: ApiUsage,
    /// The number of its newest event, from 0: the value of `after` that reads what follows.
    pub(in crate::agents::api) last_event: Option<i64>,
}

/// A plan of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct RunPlan {
    pub(in crate::agents::api) steps: Vec<ApiPlannedStep>,
}

/// Events of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct RunEventLog {
    /// Oldest first, as in the event stream; see `/api/v1/events.schema.json`.
    #[schema(value_type = Vec<Object>)]
    pub(in crate::agents::api) events: Vec<ApiRunEvent>,
    /// To be given back as `after`; null if no further events are logged so far.
    pub(in crate::agents::api) next: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct ResolvedStep {
    pub(in crate::agents::api) run: String,
    pub(in crate::agents::api) step: String,
    #[schema(value_type = ApiResolution)]
    pub(in crate::agents::api) outcome: Resolution,
    /// Whether this gateway continues the run.
    pub(in crate::agents::api) resumed: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct CancelledRun {
    pub(in crate::agents::api) run: String,
    pub(in crate::agents::api) cancelled: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct UnknownSteps {
    /// Oldest first.
    pub(in crate::agents::api) steps: Vec<UnknownStep>,
    /// To be given back as `after`; null if this is the last page.
    pub(in crate::agents::api) next: Option<String>,
}

/// A step whose outcome is unknown.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct UnknownStep {
    run: String,
    /// The id of the step; from the second attempt on with the number of the attempt, such as `write#2`.
    step: String,
    tool: String,
    source: Option<String>,
    /// The arguments, secrets redacted; null if `arguments_text` is set.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
    /// The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
    arguments_text: Option<String>,
    started_at: i64,
}

impl UnknownStep {
    /// Its place in the list of all.
    pub(in crate::agents::api) fn cursor(&self) -> String {
        // Padded, so that the order of texts is that of times.
        format!("{:020}/{}/{}", self.started_at.max(0), self.run, self.step)
    }

    pub(in crate::agents::api) fn of(step: &StepRecord) -> Self {
        let arguments = RecordedArguments::of(&step.redacted_arguments);
        Self {
            run: step.run.to_string(),
            step: step.step.clone(),
            tool: step.tool.clone(),
            source: step.source.as_ref().map(ToString::to_string),
            arguments: arguments.object,
            arguments_text: arguments.text,
            started_at: step.started_at,
        }
    }
}
