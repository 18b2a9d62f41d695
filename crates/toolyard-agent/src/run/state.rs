//! [`Run`]: the state of a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toolyard_model::{ModelErrorKind, ModelReply};

use super::{
    data_sources::DataSources,
    event::{ModelTask, RunEnd, StepEnd},
    limits::RunUsage,
    request::RunRequest,
    step::{ApprovalState, StepPhase, StepRun},
};
use crate::PlanProblem;

/// The state of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub(super) request: Option<RunRequest>,
    pub(super) round: usize,
    pub(super) planning: PlanningState,
    pub(super) problems: Vec<PlanProblem>,
    #[serde(default)]
    pub(super) tool_searches: Vec<String>,
    pub(super) rejected_reply: Option<String>,
    pub(super) steps: Vec<StepRun>,
    /// Steps that a later plan dropped.
    pub(super) dropped_steps: Vec<StepRun>,
    /// Replies not processed yet, and the texts of reasoning steps.
    pub(super) replies: Vec<(ModelTask, ModelReply)>,
    pub(super) model_failures: Vec<ModelFailure>,
    /// Hashes of the tools approved for the whole run.
    pub(super) always_allowed: BTreeSet<String>,
    /// Number of calls by their hash.
    pub(super) call_counts: BTreeMap<String, usize>,
    /// Number of attempts by step id: a new plan or new arguments are a new attempt.
    pub(super) attempts: BTreeMap<String, usize>,
    /// Sources of the non-public data in the conversation and in all results and errors, also of steps that were dropped.
    pub(super) data_sources: DataSources,
    pub(super) unapproved_disclosures: usize,
    pub(super) usage: RunUsage,
    /// How the run ends after the review of its answer.
    #[serde(default)]
    pub(super) answered: Option<RunEnd>,
    pub(super) end: Option<RunEnd>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PlanningState {
    #[default]
    Needed,
    /// The first plan of the round was rejected.
    RepairNeeded,
    Planned,
    /// This round will have no plan.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelFailure {
    pub(super) task: ModelTask,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    #[serde(default)]
    pub(super) kind: Option<ModelErrorKind>,
}

/// Why an event is not valid in the current state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The log of the run begins with another event than the request.
    ///
    /// Remedy: check the store with `toolyard store check`; close the run with `toolyard runs cancel RUN`.
    #[error("the run has no request yet")]
    NotRequested,
    /// An event was added to a run that has ended, or is suspended and was not resumed.
    ///
    /// Remedy: show the state of the run with `toolyard runs show RUN`, and resume a suspended one with `toolyard runs
    /// resume RUN`.
    #[error("the run has finished or is suspended")]
    Ended,
    /// An event names a step that no plan of the run has.
    ///
    /// Remedy: check the store with `toolyard store check`; close the run with `toolyard runs cancel RUN`.
    #[error("the run has no step `{0}`")]
    UnknownStep(String),
    /// An event contradicts the state of the run: two processes wrote to it, another version of Toolyard did, or the
    /// store is damaged.
    ///
    /// Remedy: check the store with `toolyard store check`; close the run with `toolyard runs cancel RUN` and ask
    /// again.
    #[error("invalid event: {0}")]
    Invalid(&'static str),
}

impl Run {
    /// A run without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// The request, once the run has one.
    pub fn request(&self) -> Option<&RunRequest> {
        self.request.as_ref()
    }

    /// The current planning round: 0 for the first plan.
    pub fn round(&self) -> usize {
        self.round
    }

    /// The steps of the current plan, and earlier steps that have a result.
    pub fn steps(&self) -> &[StepRun] {
        &self.steps
    }

    /// How the run ends after the review of its answer, once the answer is known.
    pub fn answered(&self) -> Option<&RunEnd> {
        self.answered.as_ref()
    }

    /// Steps of earlier plans that a later plan replaced or gave up.
    pub fn dropped_steps(&self) -> &[StepRun] {
        &self.dropped_steps
    }

    /// A step by its id.
    pub fn step(&self, id: &str) -> Option<&StepRun> {
        self.steps.iter().find(|step| step.step.id == id)
    }

    /// The words that the planner searched tools with, the oldest first.
    pub fn tool_searches(&self) -> &[String] {
        &self.tool_searches
    }

    /// The problems of the last rejected plan.
    pub fn problems(&self) -> &[PlanProblem] {
        &self.problems
    }

    /// The reply that was rejected as a plan.
    pub fn rejected_reply(&self) -> Option<&str> {
        self.rejected_reply.as_deref()
    }

    /// What the run has used so far.
    pub fn usage(&self) -> &RunUsage {
        &self.usage
    }

    /// How the run ended, if it finished or is suspended.
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    /// Whether the run has finished: ended and not merely suspended.
    pub fn is_finished(&self) -> bool {
        self.end.as_ref().is_some_and(|end| !matches!(end, RunEnd::Suspended { .. }))
    }

    /// The reply to a task, if it is not processed yet.
    pub fn reply(&self, task: &ModelTask) -> Option<&ModelReply> {
        self.replies.iter().find(|(other, _)| other == task).map(|(_, reply)| reply)
    }

    /// The message and hint of a failed model request.
    pub fn model_failure(&self, task: &ModelTask) -> Option<(&str, Option<&str>)> {
        let failure = self.model_failures.iter().find(|failure| failure.task == *task)?;
        Some((&failure.message, failure.hint.as_deref()))
    }

    /// The class of failure of a failed model request; also `None` if an old log does not have it.
    pub fn model_failure_kind(&self, task: &ModelTask) -> Option<ModelErrorKind> {
        self.model_failures.iter().find(|failure| failure.task == *task)?.kind
    }

    /// Whether the tool with this hash is approved for the whole run.
    pub fn is_always_allowed(&self, tool_hash: &str) -> bool {
        self.always_allowed.contains(tool_hash)
    }

    /// Whether a step other than `step` made the call with this hash, and it took effect or may have.
    pub fn was_called_by_another(&self, call_hash: &str, step: &str) -> bool {
        let took_effect = |step: &StepRun| {
            matches!(step.phase, StepPhase::Ended(StepEnd::Done { .. } | StepEnd::Unknown { .. }))
        };
        self.steps.iter().any(|other| other.step.id != step && other.call == call_hash && took_effect(other))
    }

    /// How often the call with this hash was made.
    pub fn call_count(&self, call_hash: &str) -> usize {
        self.call_counts.get(call_hash).copied().unwrap_or(0)
    }

    /// What the run waits for: ids of approval requests, and `step NAME` for steps whose outcome is unknown.
    pub fn waiting_for(&self) -> Vec<String> {
        let waiting_for = |step: &StepRun| match (&step.phase, &step.approval) {
            (phase, ApprovalState::Requested { id, .. }) if !phase.is_ended() => Some(id.to_string()),
            (phase, _) if phase.is_unknown() => Some(format!("step {}", step.journal_name())),
            _ => None,
        };
        self.steps.iter().filter_map(waiting_for).collect()
    }
}
