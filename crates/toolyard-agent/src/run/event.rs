//! Events of a run: [`RunEvent`]s are logged, [`RunUpdate`]s also carry progress that is not.

mod planned_tools;

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard_core::{ApprovalId, ErrorKind, Resolution, RunId, SourceId};
use toolyard_model::{ModelErrorKind, ModelReply, Usage};

use super::{effect::Effect, limits::RunLimit, request::RunRequest};
use crate::{Plan, PlanProblem, Review};

/// A state transition of a run. The run log is the sequence of its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields without a comment are named after what they hold")]
pub enum RunEvent {
    /// The run was created.
    Requested { request: RunRequest },
    /// A model replied.
    ModelReplied {
        task: ModelTask,
        reply: ModelReply,
        /// Duration of the request.
        milliseconds: u64,
        /// The [`ModelRequest`](toolyard_model::ModelRequest) as JSON. Secrets are redacted when the event is logged. Absent in logs of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<Box<Value>>,
    },
    /// A model request failed.
    ModelFailed {
        task: ModelTask,
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// The class of failure. Absent in old logs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<ModelErrorKind>,
        /// Usage of the failed request, as far as it is known.
        #[serde(default, skip_serializing_if = "is_zero")]
        usage: Usage,
        /// The request, likewise; absent also if none was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<Box<Value>>,
    },
    /// A plan was accepted.
    Planned {
        /// The checked plan; the dependencies of its steps include the steps their arguments refer to.
        plan: Plan,
        /// The tools of its steps, by step id.
        #[serde(with = "planned_tools")]
        tools: BTreeMap<String, PlannedTool>,
    },
    /// A plan was rejected.
    PlanRejected { problems: Vec<PlanProblem> },
    /// The planner asked for tools that its prompt did not show; it is asked again, with those that these words find.
    ToolsSearched { words: String },
    /// A step's arguments are resolved and its call is about to be made.
    StepStarted {
        step: String,
        /// The resolved arguments, secrets redacted, truncated.
        arguments_preview: String,
        /// What the call is about, see [`Effect::target`]. Absent in old logs.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        target: String,
        /// Whether the tool that is called may change something, which may not have been known when the call was planned.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_change: bool,
        /// Short hash of tool and arguments; identical calls share it. Empty for a step without a tool.
        #[serde(default)]
        call: String,
        /// Repairs of the plan, and references that were resolved approximately.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A step ended.
    StepEnded { step: String, outcome: StepEnd, milliseconds: u64 },
    /// A step got new arguments.
    StepRepaired {
        step: String,
        arguments: Map<String, Value>,
        /// What changed, with the values before and after. Absent in old logs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// No better arguments were found for a step.
    RepairFailed { step: String, reason: String },
    /// A user resolved a step whose outcome was unknown.
    StepResolved {
        step: String,
        /// Whether the call took effect.
        resolution: Resolution,
    },
    /// A step's result was verified.
    Verified { step: String, verification: Verification },
    /// A call needs an approval.
    ApprovalRequested {
        step: String,
        /// Id of the approval request.
        approval_id: ApprovalId,
        /// The text shown to the approver.
        text: String,
        /// Hash of the tool's name, source and definition: the scope of `always`.
        #[serde(default)]
        tool: String,
        /// Hash of the tool and the arguments: the scope of a single approval.
        #[serde(default)]
        call: String,
        /// The parts of the text; absent in logs of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Box<ApprovalDetails>>,
    },
    /// An approver decided, or changed rules allow the call.
    ApprovalDecided {
        step: String,
        /// Whether the call was approved.
        allowed: bool,
        /// Whether the approval covers every call of this tool in this run.
        #[serde(default)]
        always: bool,
        by: String,
    },
    /// The answer is known. A model is asked whether it is what was asked for; whatever it says, the run ends like this.
    Answered { end: RunEnd },
    /// The run finished or was suspended.
    Ended {
        end: RunEnd,
        /// The receipt ([`Run::effects`](crate::Run::effects)). Absent in old logs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effects: Option<Vec<Effect>>,
        /// What a model says of the answer, if it was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        review: Option<Review>,
    },
    /// The run continues after it was suspended or its process died.
    Resumed {
        /// The process that continues it.
        owner: String,
    },
}

/// The parts of the text of an approval request, for approvers who see more than one line of text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApprovalDetails {
    /// The effects of the tool in words, such as `writes, open world`.
    pub effects: String,
    /// The arguments as JSON, shortened if they are long; secrets are redacted.
    pub arguments: String,
    /// Notes for the approver.
    pub notes: Vec<String>,
}

/// What a model is asked for in a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields without a comment are named after what they hold")]
pub enum ModelTask {
    /// A plan, or an immediate answer.
    Plan {
        /// 0 for the first plan.
        round: usize,
        /// Whether the first attempt of this round was rejected.
        repair: bool,
    },
    /// The result of a step without a tool.
    Reason { step: String },
    /// New arguments for a failed step.
    Repair { step: String },
    /// A verdict on a result.
    Judge { step: String },
    /// The final answer.
    Answer,
    /// Whether the answer is what was asked for.
    Review,
}

/// What was known about a step's tool when its plan was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTool {
    /// The source, if the hub knew the tool.
    pub source: Option<SourceId>,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether calls need an approval.
    pub permission: Permission,
    /// Whether its results and errors may contain non-public data that is not in its arguments.
    #[serde(default = "assume")]
    pub reads_private: bool,
    /// Whether it may pass its arguments to systems outside.
    #[serde(default = "assume")]
    pub open_world: bool,
    /// Repairs of the step, for the approver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Whether a tool call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "self-explanatory")]
pub enum Permission {
    Allow,
    Ask,
    Deny,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum StepEnd {
    /// It succeeded. The journal holds its value under the step's journal name.
    Done {
        /// The source that answered.
        source: Option<SourceId>,
        /// Beginning of the value.
        preview: String,
        /// Size of the value: characters of its text, or bytes of a large structured value.
        size: usize,
        /// Whether a model reasoned it out although the step names a tool, because the tool could not be used.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reasoned: bool,
    },
    /// It failed.
    Failed {
        /// Why.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// The error class, if a tool failed.
        #[serde(default)]
        kind: Option<ErrorKind>,
    },
    /// It was not started because a dependency failed.
    Skipped {
        /// The step that failed.
        because: String,
    },
    /// A rule or an approver denied the call.
    Denied {
        /// The rule or approver.
        by: String,
    },
    /// The call may have taken effect; a user must resolve it.
    Unknown {
        /// What is known.
        message: String,
    },
    /// The call was not made because the run is a dry run.
    Simulated,
}

/// The verdict on a result, as in the specification's `verify_result`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether the result may be used.
    pub verified: bool,
    /// Confidence from 0 to 1.
    pub confidence: f64,
    /// The findings.
    pub issues: Vec<String>,
    /// Whether the output reports a failure although the call succeeded.
    #[serde(default)]
    pub reported_error: bool,
}

/// How a run finished, or why it is suspended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(tag = "state", rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields without a comment are named after what they hold")]
pub enum RunEnd {
    /// It has an answer.
    Answered {
        answer: String,
        /// The tools and sources the answer is based on.
        sources: Vec<String>,
        /// Whether the model reached its output limit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
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
        hint: Option<String>,
        /// Why a model did not reply, if the run failed because of that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_error: Option<ModelErrorKind>,
    },
    /// It waits for approvals or for unknown outcomes to be resolved, and can be resumed.
    Suspended {
        /// Ids of approval requests, and `step NAME` for steps whose outcome is unknown.
        waiting_for: Vec<String>,
    },
    /// It was cancelled.
    Cancelled,
    /// It reached a limit.
    LimitReached {
        limit: RunLimit,
        /// The limit's value, and what was found before.
        message: String,
    },
}

impl RunEvent {
    /// An end without a receipt, as in old logs.
    pub fn ended(end: RunEnd) -> Self {
        Self::Ended { end, effects: None, review: None }
    }
}

/// The answer, or how the run ended without one.
impl fmt::Display for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answered { answer, .. } | Self::Partial { answer, .. } => answer,
            Self::Planned => "the plan is ready; no tool was called",
            Self::Failed { message, .. } | Self::LimitReached { message, .. } => message,
            Self::Suspended { .. } => {
                "the run is suspended: it waits for approvals or for the outcome of a step"
            }
            Self::Cancelled => "the run was cancelled",
        })
    }
}

impl RunEnd {
    /// The text for the user, if the run has an answer.
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Answered { answer, .. } | Self::Partial { answer, .. } => Some(answer),
            Self::Planned
            | Self::Failed { .. }
            | Self::Suspended { .. }
            | Self::Cancelled
            | Self::LimitReached { .. } => None,
        }
    }
}

/// What a [`RunWatcher`](crate::RunWatcher) sees of a run: its events, and progress that is not logged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(tag = "update", rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields without a comment are named after what they hold")]
pub enum RunUpdate {
    /// A logged event.
    Event {
        run: RunId,
        /// Position of the event in the log.
        number: i64,
        event: RunEvent,
    },
    /// A model request is about to be sent.
    ModelRequested { task: ModelTask },
    /// The next piece of the answer.
    AnswerDelta {
        text: String,
        /// Whether tool calls may follow, in which case it was not an answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tentative: bool,
    },
    /// The answer streamed so far is void: the model made tool calls or failed.
    AnswerDiscarded,
    /// The next piece of a model's reasoning.
    ReasoningDelta { text: String },
    /// Progress of a tool call.
    StepProgress { step: String, message: String },
    /// The usage of the run changed.
    UsageChanged {
        /// Tokens and cost so far.
        usage: Usage,
    },
}

/// What is assumed about a tool of which nothing is known.
fn assume() -> bool {
    true
}

fn is_zero(usage: &Usage) -> bool {
    *usage == Usage::default()
}

#[cfg(test)]
mod tests {
    use toolyard_core::{RawJson, redact_json};
    use toolyard_model::{ModelMessage, ModelRequest, ModelTool, ResponseSchema};

    use super::*;
    use crate::Step;

    #[test]
    fn failures_in_old_logs_have_no_class() {
        let failed = r#"{"event":"model_failed","task":{"for":"answer"},"message":"m","hint":null}"#;
        let RunEvent::ModelFailed { kind, .. } = serde_json::from_str(failed).unwrap() else { panic!() };
        let ended = r#"{"event":"ended","end":{"state":"failed","message":"m","hint":null}}"#;
        let RunEvent::Ended { end: RunEnd::Failed { model_error, .. }, .. } =
            serde_json::from_str(ended).unwrap()
        else {
            panic!()
        };
        assert_eq!((kind, model_error), (None, None));
    }

    #[test]
    fn redaction_keeps_plans_whose_step_ids_look_like_secret_names() {
        let names = ["token", "password", "api_key", "secret", "cookies", "authorization", "login_password"];
        let step = |id: &&str| Step {
            id: (*id).to_owned(),
            description: String::new(),
            tool_type: "read".to_owned(),
            arguments: Map::new(),
            dependencies: vec!["token".to_owned()],
        };
        let tool = PlannedTool {
            source: Some("excel".into()),
            read_only: true,
            permission: Permission::Allow,
            reads_private: true,
            open_world: false,
            notes: Vec::new(),
        };
        let planned = RunEvent::Planned {
            plan: Plan { steps: names.iter().map(step).collect() },
            tools: names.iter().map(|name| ((*name).to_owned(), tool.clone())).collect(),
        };
        let (text, _) = redact_json(&RawJson::from_serialize(&planned).unwrap());
        assert_eq!(text.read::<RunEvent>().unwrap(), planned);
    }

    #[test]
    fn what_was_sent_can_be_read_after_redaction() {
        let schema =
            RawJson::parse(r#"{"properties":{"password":{"default":"hunter22"}}}"#.to_owned()).unwrap();
        let sent = ModelRequest {
            messages: vec![ModelMessage::user("the password is password=hunter22")],
            tools: vec![ModelTool {
                name: "token".to_owned(),
                description: String::new(),
                parameters: schema.clone(),
            }],
            schema: Some(ResponseSchema { name: "secret".to_owned(), schema }),
            max_tokens: Some(1),
            temperature: Some(0.5),
            stop: vec!["secret".to_owned()],
        };
        let replied = RunEvent::ModelReplied {
            task: ModelTask::Answer,
            reply: ModelReply::default(),
            milliseconds: 1,
            sent: serde_json::to_value(&sent).ok().map(Box::new),
        };
        let (text, redacted) = redact_json(&RawJson::from_serialize(&replied).unwrap());
        let RunEvent::ModelReplied { sent: Some(sent), .. } = text.read().unwrap() else { panic!() };
        assert!(redacted && !text.get().contains("hunter22"), "{text:?}");
        let sent: ModelRequest = serde_json::from_value(*sent).unwrap();
        assert_eq!((sent.tools.len(), sent.max_tokens, sent.stop.len()), (1, Some(1), 1));
    }
}
