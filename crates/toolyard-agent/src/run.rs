//! A run: everything that is known of it, folded from its transitions, and what may be done next. No IO.
//!
//! [`Run::apply`] takes transitions one after the other and refuses impossible ones; [`Run::tasks`] says what may be
//! begun. Whoever drives a run does nothing else than tasks, and tells what came of them as transitions.

mod apply;
mod step;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toolyard_model::ModelReply;

pub use step::{Approval, Phase, Repair, StepRun};
pub use tasks::Task;

use crate::{Ask, ModelTask, PlanProblem, RunEnd, RunEvent, Spent, StepEnd};

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    ask: Option<Ask>,
    /// Which plan it is at: 0 for the first.
    round: usize,
    planning: Planning,
    /// What was wrong with the last plan that was refused.
    problems: Vec<PlanProblem>,
    /// What the model said when it was refused.
    refused: Option<String>,
    steps: Vec<StepRun>,
    /// What models said that was not acted upon yet, and the texts of steps without a tool.
    replies: Vec<(ModelTask, ModelReply)>,
    /// Models that did not answer.
    unanswered: Vec<Unanswered>,
    /// Tools that a person allowed for the whole run.
    allowed: BTreeSet<String>,
    /// How often calls were made, by their hash.
    identical: BTreeMap<String, usize>,
    /// How often a name was given to a step or its arguments.
    attempts: BTreeMap<String, usize>,
    spent: Spent,
    end: Option<RunEnd>,
}

/// How the plan of a round is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Planning {
    #[default]
    Wanted,
    /// The first one was refused.
    RepairWanted,
    Planned,
    /// There will be no plan in this round.
    GivenUp,
}

/// A request that a model did not answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Unanswered {
    task: ModelTask,
    message: String,
    hint: Option<String>,
}

/// Why a transition cannot follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing was asked yet.
    #[error("the run has not begun")]
    NotBegun,
    /// It is over for good, or suspended and not resumed.
    #[error("the run is over")]
    Over,
    /// There is no such step.
    #[error("the run has no step `{0}`")]
    UnknownStep(String),
    /// It does not fit what is known.
    #[error("the run cannot go on with this: {0}")]
    Impossible(&'static str),
}

impl Run {
    /// A run of which nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A run after these transitions.
    pub fn after<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> Result<Self, RunError> {
        let mut run = Self::new();
        for event in events {
            run.apply(event)?;
        }
        Ok(run)
    }

    /// What was asked, once something was.
    pub fn ask(&self) -> Option<&Ask> {
        self.ask.as_ref()
    }

    /// Which plan it is at: 0 for the first.
    pub fn round(&self) -> usize {
        self.round
    }

    /// All steps: those of the last plan, and what earlier plans brought.
    pub fn steps(&self) -> &[StepRun] {
        &self.steps
    }

    /// One step.
    pub fn step(&self, id: &str) -> Option<&StepRun> {
        self.steps.iter().find(|step| step.step.id == id)
    }

    /// What was wrong with the last plan that was refused.
    pub fn problems(&self) -> &[PlanProblem] {
        &self.problems
    }

    /// What the model said that was refused as a plan.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// What was used so far; working time is known from the log alone.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    /// How it stands, if nobody needs to go on with it now.
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    /// Whether it is over for good.
    pub fn is_over(&self) -> bool {
        self.end.as_ref().is_some_and(|end| !matches!(end, RunEnd::Suspended { .. }))
    }

    /// What a model said to a task, if that was not acted upon yet.
    pub fn reply(&self, task: &ModelTask) -> Option<&ModelReply> {
        self.replies.iter().find(|(known, _)| known == task).map(|(_, reply)| reply)
    }

    /// Why a model did not answer a task, and what to do about it.
    pub fn unanswered(&self, task: &ModelTask) -> Option<(&str, Option<&str>)> {
        let found = self.unanswered.iter().find(|unanswered| unanswered.task == *task)?;
        Some((&found.message, found.hint.as_deref()))
    }

    /// Whether a person allowed this tool for the whole run.
    pub fn is_always_allowed(&self, tool: &str) -> bool {
        self.allowed.contains(tool)
    }

    /// Whether another step made this call, and it took effect or may have.
    pub fn has_done(&self, call: &str, but: &str) -> bool {
        let took_effect = |step: &StepRun| {
            matches!(step.phase, Phase::Ended(StepEnd::Done { .. } | StepEnd::Unknown { .. }))
        };
        self.steps.iter().any(|step| step.step.id != but && step.call == call && took_effect(step))
    }

    /// How often a call was made.
    pub fn identical(&self, call: &str) -> usize {
        self.identical.get(call).copied().unwrap_or(0)
    }

    /// What it waits for: the numbers of questions, and `step NAME` for steps whose outcome only a person knows.
    pub fn waiting(&self) -> Vec<String> {
        let waits = |step: &StepRun| match (&step.phase, &step.approval) {
            (phase, Approval::Asked { question, .. }) if !phase.is_ended() => Some(question.to_string()),
            (phase, _) if phase.is_unknown() => Some(format!("step {}", step.journal_name())),
            _ => None,
        };
        self.steps.iter().filter_map(waits).collect()
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
