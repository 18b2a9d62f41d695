//! Run events as the HTTP API shows them: flat JSON objects with a `type`, separate from the form in which the log keeps them.

mod body;
#[cfg(test)]
mod tests;

use schemars::{Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;
use toolyard_agent::{
    Effect, ModelTask, NO_TOOL, Plan, PlannedTool, Review, RunEnd, RunEvent, RunUpdate, StepEnd, Verification,
};
use toolyard_core::RunId;

pub(super) use self::body::{
    ApiApprovalScope, ApiEffect, ApiEventBody, ApiPlannedStep, ApiResolution, ApiReview, ApiRunEvent,
    ApiUsage,
};
use self::body::{ApiModelTask, ApiModelTaskKind, ApiRunEnd, ApiStepEnd};
use super::arguments::RecordedArguments;

/// What a run waits for starts with this if it is a step whose outcome is unknown, and is the id of an approval otherwise.
const UNKNOWN_STEP_PREFIX: &str = "step ";
/// The message of a step whose end the API does not know.
pub(super) const UNKNOWN_END: &str = "the step ended in an unknown way";

/// The JSON Schema (2020-12) of a run event.
pub(super) fn run_event_schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(remove_null));
    settings.into_generator().into_root_schema_for::<ApiRunEvent>()
}

/// Optional fields of events are absent and never `null`.
fn remove_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").and_then(Value::as_str) != Some("null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            schema.ensure_object().extend(only);
        }
    }
}

/// Turns updates of a run into events for clients.
#[derive(Debug, Clone)]
pub(super) struct RunEventMapper {
    pub(super) run: RunId,
    /// Unix time in milliseconds.
    pub(super) created_at: Option<i64>,
}

impl RunEventMapper {
    /// `None` for what is no part of the API.
    pub(super) fn event(&self, update: RunUpdate) -> Option<ApiRunEvent> {
        let run = self.run.to_string();
        let (number, body) = match update {
            RunUpdate::Event { number, event, .. } => (Some(number), self.logged(event)?),
            RunUpdate::ModelRequested { task } => {
                (None, ApiEventBody::ModelRequested { task: model_task(task) })
            }
            RunUpdate::AnswerDelta { text, tentative } => {
                (None, ApiEventBody::AnswerDelta { text, tentative })
            }
            RunUpdate::AnswerDiscarded => (None, ApiEventBody::AnswerDiscarded),
            RunUpdate::ReasoningDelta { text } => (None, ApiEventBody::ReasoningDelta { text }),
            RunUpdate::StepProgress { step, message } => (None, ApiEventBody::StepProgress { step, message }),
            RunUpdate::UsageChanged { usage } => (None, ApiEventBody::UsageChanged { usage: usage.into() }),
            _ => return None,
        };
        Some(ApiRunEvent { body, run, number })
    }

    fn logged(&self, event: RunEvent) -> Option<ApiEventBody> {
        Some(match event {
            RunEvent::Requested { request } => ApiEventBody::RunCreated {
                agent: request.agent,
                question: request.question,
                conversation: request.conversation.map(|conversation| conversation.name),
                created_at: self.created_at,
            },
            RunEvent::ModelReplied { task, reply, milliseconds, sent: _ } => ApiEventBody::ModelReplied {
                task: model_task(task),
                duration_ms: milliseconds,
                usage: reply.usage.into(),
            },
            RunEvent::ModelFailed { task, message, hint, kind, usage: _, sent: _ } => {
                ApiEventBody::ModelFailed {
                    task: model_task(task),
                    message,
                    hint: client_hint(hint),
                    error_kind: kind,
                }
            }
            RunEvent::Planned { plan, tools } => {
                ApiEventBody::Planned { steps: planned_steps(plan, |step| tools.get(step)) }
            }
            RunEvent::PlanRejected { problems } => {
                ApiEventBody::PlanRejected { problems: problems.iter().map(ToString::to_string).collect() }
            }
            RunEvent::ToolsSearched { words } => ApiEventBody::ToolsSearched { words },
            RunEvent::StepStarted { step, arguments_preview, target, notes, .. } => {
                let RecordedArguments { object, text } = RecordedArguments::of(&arguments_preview);
                ApiEventBody::StepStarted { step, arguments: object, arguments_text: text, target, notes }
            }
            RunEvent::StepEnded { step, outcome, milliseconds } => {
                ApiEventBody::StepEnded { step, duration_ms: milliseconds, end: step_end(outcome) }
            }
            RunEvent::StepRepaired { step, arguments, notes } => {
                ApiEventBody::StepRepaired { step, arguments, notes }
            }
            RunEvent::RepairFailed { step, reason } => ApiEventBody::RepairFailed { step, message: reason },
            RunEvent::StepResolved { step, resolution } => {
                ApiEventBody::StepResolved { step, outcome: resolution.into() }
            }
            RunEvent::Verified { step, verification } => {
                let Verification { verified, confidence, issues, reported_error: _ } = verification;
                ApiEventBody::StepVerified { step, verified, confidence, issues }
            }
            RunEvent::ApprovalRequested { step, approval_id, text, .. } => {
                ApiEventBody::ApprovalRequested { step, approval: approval_id.0, text }
            }
            RunEvent::ApprovalDecided { step, allowed, always, by } => {
                let scope = if always { ApiApprovalScope::Run } else { ApiApprovalScope::Once };
                ApiEventBody::ApprovalDecided { step, allow: allowed, scope, by }
            }
            RunEvent::Answered { end } => {
                ApiEventBody::Answered { answer: end.answer().unwrap_or_default().to_owned() }
            }
            RunEvent::Ended { end, effects, review } => run_end(end, effects, review),
            RunEvent::Resumed { owner } => ApiEventBody::RunResumed { owner },
            _ => return None,
        })
    }
}

fn model_task(task: ModelTask) -> ApiModelTask {
    let (task, step) = match task {
        ModelTask::Plan { .. } => (ApiModelTaskKind::Plan, None),
        ModelTask::Reason { step } => (ApiModelTaskKind::Reason, Some(step)),
        ModelTask::Repair { step } => (ApiModelTaskKind::Repair, Some(step)),
        ModelTask::Judge { step } => (ApiModelTaskKind::Judge, Some(step)),
        ModelTask::Answer => (ApiModelTaskKind::Answer, None),
        ModelTask::Review => (ApiModelTaskKind::Review, None),
    };
    ApiModelTask { task, step }
}

/// The steps of a plan, with what is known about their tools.
pub(super) fn planned_steps<'a>(
    plan: Plan,
    tool_of: impl Fn(&str) -> Option<&'a PlannedTool>,
) -> Vec<ApiPlannedStep> {
    let steps = plan.steps.into_iter().map(|step| {
        let planned = tool_of(&step.id);
        ApiPlannedStep {
            source: planned.and_then(|tool| tool.source.as_ref()).map(ToString::to_string),
            permission: planned.map(|tool| tool.permission.into()),
            tool: (step.tool_type != NO_TOOL).then_some(step.tool_type),
            id: step.id,
            description: step.description,
            arguments: step.arguments,
            depends_on: step.dependencies,
        }
    });
    steps.collect()
}

fn step_end(end: StepEnd) -> ApiStepEnd {
    match end {
        StepEnd::Done { source, preview, size, reasoned } => {
            let source = source.map(|source| source.to_string());
            ApiStepEnd::Done { source, output: preview, size, reasoned }
        }
        StepEnd::Failed { message, hint, kind } => {
            ApiStepEnd::Failed { message, hint: client_hint(hint), error_kind: kind }
        }
        StepEnd::Skipped { because } => ApiStepEnd::Skipped { because },
        StepEnd::Denied { by } => ApiStepEnd::Denied { denied_by: by },
        StepEnd::Unknown { message } => ApiStepEnd::Unknown { message },
        StepEnd::Simulated => ApiStepEnd::Simulated,
        _ => ApiStepEnd::Unknown { message: UNKNOWN_END.to_owned() },
    }
}

fn run_end(end: RunEnd, effects: Option<Vec<Effect>>, review: Option<Review>) -> ApiEventBody {
    let effects = effects.map(|effects| effects.into_iter().map(ApiEffect::from).collect());
    let end = match end {
        RunEnd::Suspended { waiting_for } => {
            let unknown_steps = waiting_for.iter().filter_map(|text| text.strip_prefix(UNKNOWN_STEP_PREFIX));
            return ApiEventBody::RunSuspended {
                approvals: waiting_for.iter().filter_map(|text| text.parse().ok()).collect(),
                unknown_steps: unknown_steps.map(str::to_owned).collect(),
                effects,
            };
        }
        RunEnd::Answered { answer, sources, truncated } => ApiRunEnd::Answered { answer, sources, truncated },
        RunEnd::Partial { answer, sources, unfinished_steps } => {
            ApiRunEnd::Partial { answer, sources, unfinished_steps }
        }
        RunEnd::Planned => ApiRunEnd::Planned,
        RunEnd::Failed { message, hint, model_error } => {
            ApiRunEnd::Failed { message, hint: client_hint(hint), error_kind: model_error }
        }
        RunEnd::Cancelled => ApiRunEnd::Cancelled,
        RunEnd::LimitReached { limit, message } => ApiRunEnd::LimitReached { limit, message },
        other => ApiRunEnd::Failed { message: other.to_string(), hint: None, error_kind: None },
    };
    ApiEventBody::RunEnded { end, effects, review: review.map(ApiReview::from) }
}

/// The hint, unless it names a command of the operator: clients cannot run it, and a model must not be told to.
pub(super) fn client_hint(hint: Option<String>) -> Option<String> {
    hint.filter(|hint| !hint.contains("`toolyard "))
}
