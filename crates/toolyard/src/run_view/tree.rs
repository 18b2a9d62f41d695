//! Where a run stands, put together from its news. Pure: whoever calls says what time it is.

use std::{collections::BTreeMap, time::Duration};

use toolyard_agent::{
    Ask, ModelTask, NO_TOOL, Plan, RunEnd, RunEvent, RunNews, Step, StepEnd, StepFacts, Verification,
};
use toolyard_core::{Resolution, RunId};
use toolyard_model::Usage;

use super::stages::stages;

/// Where a run stands.
#[derive(Debug, Default)]
pub(crate) struct RunTree {
    pub(crate) run: Option<RunId>,
    pub(crate) asked: Option<Ask>,
    /// Each plan in a line, and how long it took to make.
    pub(crate) plans: Vec<(String, u64)>,
    pub(crate) rows: Vec<StepRow>,
    /// What a model is asked for at this moment, and since when.
    pub(crate) thinking: Option<(ModelTask, Duration)>,
    pub(crate) model_calls: usize,
    pub(crate) usage: Usage,
    pub(crate) end: Option<RunEnd>,
    /// What went wrong with the last plan.
    pub(crate) plan_problems: Vec<String>,
    /// Why a model did not answer, the last time.
    pub(crate) model_problem: Option<String>,
    plan_milliseconds: u64,
}

/// One step.
#[derive(Debug)]
pub(crate) struct StepRow {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) source: String,
    pub(crate) description: String,
    pub(crate) state: RowState,
    /// What it is called with, for people.
    pub(crate) arguments: String,
    /// What came of it, or why not.
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
    pub(crate) since: Duration,
    pub(crate) milliseconds: Option<u64>,
    pub(crate) verification: Option<Verification>,
    pub(crate) question: Option<i64>,
}

/// How a step is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowState {
    Waiting,
    Running,
    Asks,
    Done,
    Failed,
    Skipped,
    Denied,
    Unknown,
    Rehearsed,
}

impl RunTree {
    /// Takes note of what happened at this time.
    pub(crate) fn see(&mut self, news: &RunNews, now: Duration) {
        match news {
            RunNews::Event { run, event, .. } => {
                self.run.get_or_insert_with(|| run.clone());
                self.take(event, now);
            }
            RunNews::ModelAsked { task } => self.thinking = Some((task.clone(), now)),
            RunNews::StepProgress { step, message } => {
                if let Some(row) = self.row(step) {
                    row.detail.clone_from(message);
                }
            }
            RunNews::Spent { usage } => self.usage = *usage,
            RunNews::AnswerDelta { .. } | RunNews::AnswerDropped | RunNews::ReasoningDelta { .. } => {}
        }
    }

    fn take(&mut self, event: &RunEvent, now: Duration) {
        match event {
            RunEvent::Asked { ask } => self.asked = Some(ask.clone()),
            RunEvent::ModelAnswered { task, reply, milliseconds } => {
                self.thinking = None;
                self.model_calls += 1;
                self.usage = self.usage.plus(reply.usage);
                if matches!(task, ModelTask::Plan { .. }) {
                    self.plan_milliseconds += milliseconds;
                }
            }
            RunEvent::ModelFailed { message, usage, .. } => {
                self.thinking = None;
                self.usage = self.usage.plus(*usage);
                self.model_problem = Some(message.clone());
            }
            RunEvent::Planned { plan, facts } => self.plan(plan, facts),
            RunEvent::PlanRefused { problems } => {
                self.plan_problems = problems.iter().map(ToString::to_string).collect();
            }
            RunEvent::Ended { end } => {
                self.thinking = None;
                self.end = Some(end.clone());
            }
            RunEvent::Resumed { .. } => {
                self.end = None;
                // Whoever worked on these is gone; they are begun anew or asked about.
                let left = self.rows.iter_mut().filter(|row| row.state == RowState::Running);
                left.for_each(|row| row.state = RowState::Waiting);
            }
            RunEvent::StepStarted { step, .. }
            | RunEvent::StepEnded { step, .. }
            | RunEvent::StepRepaired { step, .. }
            | RunEvent::RepairRefused { step, .. }
            | RunEvent::StepSettled { step, .. }
            | RunEvent::Verified { step, .. }
            | RunEvent::ApprovalAsked { step, .. }
            | RunEvent::ApprovalGiven { step, .. } => {
                if let Some(row) = self.row(step) {
                    row.take(event, now);
                }
            }
        }
    }

    /// A plan: its steps are added; those of an earlier plan that were not begun are not part of it any more.
    fn plan(&mut self, plan: &Plan, facts: &BTreeMap<String, StepFacts>) {
        self.plan_problems.clear();
        self.plans.push((stages(plan), std::mem::take(&mut self.plan_milliseconds)));
        self.rows
            .retain(|row| row.state != RowState::Waiting || plan.steps.iter().any(|step| step.id == row.id));
        for step in &plan.steps {
            if self.row(&step.id).is_none() {
                self.rows.push(StepRow::new(step, facts.get(&step.id)));
            }
        }
    }

    fn row(&mut self, id: &str) -> Option<&mut StepRow> {
        self.rows.iter_mut().rev().find(|row| row.id == id)
    }

    /// The step that news are about.
    pub(crate) fn row_of(&self, id: &str) -> Option<&StepRow> {
        self.rows.iter().rev().find(|row| row.id == id)
    }

    /// How many results were looked at, and how many of them were found fine.
    pub(crate) fn verified(&self) -> (usize, usize) {
        let looked = self.rows.iter().filter_map(|row| row.verification.as_ref());
        looked.fold((0, 0), |(all, fine), one| (all + 1, fine + usize::from(one.verified)))
    }
}

impl StepRow {
    fn new(step: &Step, facts: Option<&StepFacts>) -> Self {
        let source = facts.and_then(|facts| facts.source.as_ref()).map(ToString::to_string);
        Self {
            id: step.id.clone(),
            tool: if step.tool_type == NO_TOOL { "(thinks)".to_owned() } else { step.tool_type.clone() },
            source: source.unwrap_or_default(),
            description: step.description.clone(),
            state: RowState::Waiting,
            arguments: String::new(),
            detail: String::new(),
            hint: None,
            since: Duration::ZERO,
            milliseconds: None,
            verification: None,
            question: None,
        }
    }

    fn take(&mut self, event: &RunEvent, now: Duration) {
        match event {
            RunEvent::StepStarted { shown_arguments, notes, .. } => {
                self.state = RowState::Running;
                self.since = now;
                self.arguments.clone_from(shown_arguments);
                self.detail = notes.join("; ");
            }
            RunEvent::StepEnded { outcome, milliseconds, .. } => {
                self.milliseconds = Some(*milliseconds);
                self.end(outcome);
            }
            RunEvent::StepRepaired { .. } => {
                self.state = RowState::Waiting;
                self.detail = "its arguments were written anew".to_owned();
                (self.milliseconds, self.verification) = (None, None);
            }
            RunEvent::Verified { verification, .. } => self.verification = Some(verification.clone()),
            RunEvent::ApprovalAsked { question, text, .. } => {
                self.state = RowState::Asks;
                self.question = Some(*question);
                self.detail = effects_and_arguments(text).unwrap_or_else(|| text.clone());
            }
            RunEvent::ApprovalGiven { allowed, by, .. } => {
                self.state = RowState::Waiting;
                self.detail = format!("{} by {by}", if *allowed { "allowed" } else { "denied" });
            }
            RunEvent::RepairRefused { reason, .. } => self.detail = format!("{} ({reason})", self.detail),
            RunEvent::StepSettled { resolution, .. } => {
                (self.state, self.detail) = match resolution {
                    Resolution::Done => (RowState::Done, "a person said that it was done".to_owned()),
                    Resolution::NotDone => {
                        (RowState::Waiting, "a person said that it was not done".to_owned())
                    }
                };
            }
            _ => {}
        }
    }

    fn end(&mut self, outcome: &StepEnd) {
        self.hint = None;
        (self.state, self.detail) = match outcome {
            StepEnd::Done { source, preview, size } => {
                if let Some(source) = source {
                    self.source = source.to_string();
                }
                let shown = preview.chars().count();
                let more = *size > shown && shown > 0;
                let size = more.then(|| format!(" ({} characters)", toolyard_core::grouped(*size)));
                (RowState::Done, format!("{preview}{}", size.unwrap_or_default()))
            }
            StepEnd::Failed { message, hint, .. } => {
                self.hint.clone_from(hint);
                (RowState::Failed, message.clone())
            }
            StepEnd::Skipped { because } => {
                (RowState::Skipped, format!("not begun, because {because} failed"))
            }
            StepEnd::Denied { by } => (RowState::Denied, format!("denied by {by}")),
            StepEnd::Unknown { message } => (RowState::Unknown, message.clone()),
            StepEnd::Rehearsed => (RowState::Rehearsed, format!("would be called with {}", self.arguments)),
        };
    }
}

/// The end of a question to a person: its beginning says what the columns before it say.
pub(crate) fn effects_and_arguments(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(" be called (")?;
    let (effects, arguments) = rest.split_once(")? ")?;
    let effects = effects.split_once(", definition").map_or(effects, |(effects, _)| effects);
    Some(format!("{effects}: {arguments}"))
}
