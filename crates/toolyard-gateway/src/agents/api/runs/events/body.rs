//! The types of run events in version 1 of the HTTP API. Their schema is derived from these types, so that both agree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard_agent::{Effect, EffectCause, EffectState, Fulfilled, Permission, Review, RunLimit};
use toolyard_core::{ErrorKind, Resolution};
use toolyard_model::{ModelErrorKind, Usage};
use utoipa::ToSchema;

/// One event of a run. Further types and fields may be added within version 1 of the API; clients ignore those that they do not
/// know.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "Toolyard run event")]
pub(in crate::agents::api) struct ApiRunEvent {
    /// What happened.
    #[serde(flatten)]
    pub(in crate::agents::api) body: ApiEventBody,
    /// The id of the run.
    pub(in crate::agents::api) run: String,
    /// The position of the event in the log of the run, from 0. Events that are not logged have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::agents::api) number: Option<i64>,
}

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiEventBody {
    /// The run was created.
    RunCreated {
        agent: String,
        question: String,
        /// The name of the conversation that the run belongs to.
        #[serde(skip_serializing_if = "Option::is_none")]
        conversation: Option<String>,
        /// Unix time in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<i64>,
    },
    /// A request was sent to a model. Not logged.
    ModelRequested {
        #[serde(flatten)]
        task: ApiModelTask,
    },
    /// A model replied.
    ModelReplied {
        #[serde(flatten)]
        task: ApiModelTask,
        duration_ms: u64,
        #[serde(flatten)]
        usage: ApiUsage,
    },
    /// A request to a model failed.
    ModelFailed {
        #[serde(flatten)]
        task: ApiModelTask,
        message: String,
        /// What the operator can do about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// The class of the error, such as `unreachable`, `busy` or `context_overflow`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        error_kind: Option<ModelErrorKind>,
    },
    /// A plan was accepted.
    Planned { steps: Vec<ApiPlannedStep> },
    /// A plan was rejected.
    PlanRejected { problems: Vec<String> },
    /// The planner searched for tools that it was not shown.
    ToolsSearched { words: String },
    /// The call of a step is about to be made.
    StepStarted {
        step: String,
        /// The resolved arguments, secrets redacted.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Map<String, Value>>,
        /// The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments_text: Option<String>,
        /// What the call is about: its short arguments, secrets redacted.
        #[serde(skip_serializing_if = "String::is_empty")]
        target: String,
        /// Repairs of the plan, and references that were resolved approximately.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A tool call reported progress. Not logged.
    StepProgress { step: String, message: String },
    /// A step ended.
    StepEnded {
        step: String,
        duration_ms: u64,
        #[serde(flatten)]
        end: ApiStepEnd,
    },
    /// A step got new arguments.
    StepRepaired {
        step: String,
        arguments: Map<String, Value>,
        /// What changed, with the values before and after.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// No better arguments were found for a failed step.
    RepairFailed { step: String, message: String },
    /// A user resolved a step whose outcome was unknown.
    StepResolved { step: String, outcome: ApiResolution },
    /// The result of a step was verified.
    StepVerified {
        step: String,
        /// Whether the result may be used.
        verified: bool,
        /// From 0 to 1.
        confidence: f64,
        issues: Vec<String>,
    },
    /// A tool call needs an approval.
    ApprovalRequested {
        step: String,
        /// The id of the approval.
        approval: i64,
        /// The text for the approver, with all arguments.
        text: String,
    },
    /// An approval was given or denied.
    ApprovalDecided {
        step: String,
        allow: bool,
        scope: ApiApprovalScope,
        /// The approver, or the rule.
        by: String,
    },
    /// The next piece of the answer. Not logged.
    AnswerDelta {
        text: String,
        /// Whether tool calls may follow, in which case the text was not an answer.
        tentative: bool,
    },
    /// The answer that was streamed so far is void. Not logged.
    AnswerDiscarded,
    /// The next piece of a model's reasoning. Not logged.
    ReasoningDelta { text: String },
    /// The usage of the whole run changed. Not logged.
    UsageChanged {
        #[serde(flatten)]
        usage: ApiUsage,
    },
    /// The run waits for approvals, or until steps whose outcome is unknown are resolved.
    RunSuspended {
        /// The ids of the pending approvals.
        approvals: Vec<i64>,
        unknown_steps: Vec<String>,
        /// What became of every planned change so far.
        #[serde(skip_serializing_if = "Option::is_none")]
        effects: Option<Vec<ApiEffect>>,
    },
    /// The run continues after it was suspended or its process died.
    RunResumed {
        /// The process that continues it.
        owner: String,
    },
    /// The answer is known, and a model is asked whether it is what was asked for. The run ends with it, whatever the model says.
    Answered { answer: String },
    /// The run is over. No event follows.
    RunEnded {
        #[serde(flatten)]
        end: ApiRunEnd,
        /// The receipt: what became of every planned call of a tool that may change something.
        #[serde(skip_serializing_if = "Option::is_none")]
        effects: Option<Vec<ApiEffect>>,
        /// What a model says of the answer: an opinion, which decides nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        review: Option<ApiReview>,
    },
}

/// What became of a planned call of a tool that may change something, from the records of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, ToSchema)]
pub(in crate::agents::api) struct ApiEffect {
    pub(in crate::agents::api) step: String,
    pub(in crate::agents::api) tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::agents::api) source: Option<String>,
    /// What the call was about: its short arguments, secrets redacted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::agents::api) target: String,
    /// `done`, `not_done`, or `unknown` if the call was made and its end is not known.
    #[schemars(with = "String")]
    #[schema(value_type = String)]
    pub(in crate::agents::api) state: EffectState,
    /// Why it was not done or is not known to be: `failed`, `skipped`, `denied`, `not_approved`, `dry_run`, `reasoned_out`,
    /// `not_begun`, `no_answer` or `unchecked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    #[schema(value_type = Option<String>)]
    pub(in crate::agents::api) cause: Option<EffectCause>,
    /// The error, the step that has no result, or who denied the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::agents::api) reason: Option<String>,
    /// Whether a call was begun, be it with other arguments.
    pub(in crate::agents::api) called: bool,
}

impl From<Effect> for ApiEffect {
    fn from(effect: Effect) -> Self {
        let Effect { step, tool, source, target, state, cause, reason, called } = effect;
        Self { step, tool, source, target, state, cause, reason, called }
    }
}

/// What a model says of an answer: an opinion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, ToSchema)]
pub(in crate::agents::api) struct ApiReview {
    /// Whether the request is fulfilled: `yes`, `no` or `unsure`.
    #[schemars(with = "String")]
    #[schema(value_type = String)]
    pub(in crate::agents::api) fulfilled: Fulfilled,
    /// What is missing.
    pub(in crate::agents::api) missing: Vec<String>,
}

impl From<Review> for ApiReview {
    fn from(Review { fulfilled, missing }: Review) -> Self {
        Self { fulfilled, missing }
    }
}

/// What a model is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::agents::api) struct ApiModelTask {
    /// What the model is asked for.
    pub(in crate::agents::api) task: ApiModelTaskKind,
    /// The step that the request belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::agents::api) step: Option<String>,
}

/// What a model is asked for: a plan, the result of a step without a tool, new arguments for a failed step, a verdict on a
/// result, the answer, or an opinion about the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiModelTaskKind {
    Plan,
    Reason,
    Repair,
    Judge,
    Answer,
    Review,
}

/// Tokens and cost. Tokens are estimated if the model's server does not count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema, ToSchema)]
pub(in crate::agents::api) struct ApiUsage {
    /// Input tokens, including cached ones.
    pub(in crate::agents::api) input_tokens: u64,
    /// Input tokens that the server read from its cache.
    pub(in crate::agents::api) cached_tokens: u64,
    /// Output tokens, including reasoning.
    pub(in crate::agents::api) output_tokens: u64,
    /// The cost in millionths of the operator's currency.
    pub(in crate::agents::api) cost_micros: u64,
}

impl From<Usage> for ApiUsage {
    fn from(usage: Usage) -> Self {
        let Usage { input, cached, output, cost_micros } = usage;
        Self { input_tokens: input, cached_tokens: cached, output_tokens: output, cost_micros }
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, ToSchema)]
pub(in crate::agents::api) struct ApiPlannedStep {
    /// The id of the step.
    pub(in crate::agents::api) id: String,
    /// Its purpose.
    pub(in crate::agents::api) description: String,
    /// The tool that it calls; absent if a model reasons out the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::agents::api) tool: Option<String>,
    /// The source of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::agents::api) source: Option<String>,
    /// The arguments; a text `$step.path` refers to the value of another step.
    #[schema(value_type = Object)]
    pub(in crate::agents::api) arguments: Map<String, Value>,
    /// The steps that must finish first.
    pub(in crate::agents::api) depends_on: Vec<String>,
    /// Whether the call may be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::agents::api) permission: Option<ApiPermission>,
}

/// Whether a call may be made: without an approval, with one, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiPermission {
    Allow,
    Ask,
    Deny,
}

impl From<Permission> for ApiPermission {
    fn from(permission: Permission) -> Self {
        match permission {
            Permission::Allow => Self::Allow,
            Permission::Ask => Self::Ask,
            Permission::Deny => Self::Deny,
        }
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiStepEnd {
    /// It succeeded.
    Done {
        /// The source that answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// The beginning of the value.
        output: String,
        /// The size of the value: characters of a text, or bytes of a large structured value.
        size: usize,
        /// Whether a model reasoned out the value because the tool could not be used.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        reasoned: bool,
    },
    /// It failed.
    Failed {
        message: String,
        /// What to do about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// The class of the error, if a tool failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        error_kind: Option<ErrorKind>,
    },
    /// It was not started because a dependency failed.
    Skipped {
        /// The step that failed.
        because: String,
    },
    /// The call was denied.
    Denied {
        /// The rule or the approver.
        denied_by: String,
    },
    /// The call may have taken effect; a user must resolve it.
    Unknown { message: String },
    /// The call was not made because the run is a dry run.
    Simulated,
}

/// Whether the call of a step took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiResolution {
    Done,
    NotDone,
}

impl From<Resolution> for ApiResolution {
    fn from(resolution: Resolution) -> Self {
        match resolution {
            Resolution::Done => Self::Done,
            Resolution::NotDone => Self::NotDone,
        }
    }
}

/// What an approval covers: this call, or every call of this tool in this run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiApprovalScope {
    #[default]
    Once,
    Run,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiRunEnd {
    /// It has an answer.
    Answered {
        answer: String,
        /// The tools and sources that the answer is based on.
        sources: Vec<String>,
        /// Whether the model reached its output limit.
        truncated: bool,
    },
    /// It has an answer, but a step failed, was denied or never ran, and no other did its work.
    Partial {
        answer: String,
        sources: Vec<String>,
        /// The steps that failed, were denied or never started.
        unfinished_steps: Vec<String>,
    },
    /// It has a plan, and only a plan was requested.
    Planned,
    /// No step succeeded.
    Failed {
        message: String,
        /// What the operator can do about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// The class of the error, if a model failed; see `model_failed`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        error_kind: Option<ModelErrorKind>,
    },
    /// It was cancelled.
    Cancelled,
    /// It reached a limit.
    LimitReached {
        /// The limit, such as `steps`, `tokens` or `time`.
        #[schemars(with = "String")]
        limit: RunLimit,
        message: String,
    },
}
