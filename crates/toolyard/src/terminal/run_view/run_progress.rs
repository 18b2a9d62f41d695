//! The progress of a run, folded from its updates. Pure: the time is an input.

use std::{collections::BTreeMap, time::Duration};

use toolyard_agent::{
    ApprovalDetails, Effect, EffectState, Language, ModelTask, NO_TOOL, Plan, PlannedTool, Review, RunEnd,
    RunEvent, RunRequest, RunUpdate, Step, StepEnd, Verification, receipt_lines, review_line,
};
use toolyard_core::{ApprovalId, Resolution, RunId};
use toolyard_model::Usage;

use super::plan_outline::plan_outline;

#[derive(Debug, Default)]
pub(crate) struct RunProgress {
    pub(crate) run: Option<RunId>,
    pub(crate) request: Option<RunRequest>,
    /// The outline of each plan, and how many milliseconds the model took for it.
    pub(crate) plans: Vec<(String, u64)>,
    pub(crate) rows: Vec<StepRow>,
    /// The model call in progress, and when it started.
    pub(crate) model_task: Option<(ModelTask, Duration)>,
    pub(crate) model_calls: usize,
    pub(crate) usage: Usage,
    pub(crate) end: Option<RunEnd>,
    /// What became of every planned change.
    effects: Option<Vec<Effect>>,
    /// What a model says of the answer.
    review: Option<Review>,
    pub(crate) plan_problems: Vec<String>,
    /// Why the last model call failed.
    pub(crate) model_problem: Option<String>,
    /// Time of the model calls for the next plan.
    plan_milliseconds: u64,
}

#[derive(Debug)]
pub(crate) struct StepRow {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) source: String,
    pub(crate) description: String,
    pub(crate) status: StepStatus,
    /// The arguments of its call, redacted.
    pub(crate) arguments: String,
    /// Its result, or why there is none.
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
    /// What was repaired in its arguments, and which references were resolved approximately.
    pub(crate) notes: Vec<String>,
    /// When the call started, since the view was created.
    pub(crate) started: Duration,
    /// How long the call took.
    pub(crate) milliseconds: Option<u64>,
    pub(crate) verification: Option<Verification>,
    /// Id of its last approval request, and what it is about; logs of older versions have only the text.
    approval: Option<(ApprovalId, Box<ApprovalDetails>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepStatus {
    Waiting,
    Running,
    AwaitingApproval,
    Done,
    Failed,
    Skipped,
    Denied,
    /// Its call may or may not have taken effect.
    Unknown,
    Simulated,
}

impl RunProgress {
    pub(crate) fn apply(&mut self, update: &RunUpdate, now: Duration) {
        match update {
            RunUpdate::Event { run, event, .. } => {
                self.run.get_or_insert_with(|| run.clone());
                self.apply_event(event, now);
            }
            RunUpdate::ModelRequested { task, .. } => self.model_task = Some((task.clone(), now)),
            RunUpdate::StepProgress { step, message } => {
                if let Some(row) = self.row_mut(step) {
                    row.detail.clone_from(message);
                }
            }
            RunUpdate::UsageChanged { usage } => self.usage = *usage,
            _ => {}
        }
    }

    fn apply_event(&mut self, event: &RunEvent, now: Duration) {
        match event {
            RunEvent::Requested { request } => self.request = Some(request.clone()),
            RunEvent::ModelReplied { task, reply, milliseconds, .. } => {
                self.model_task = None;
                // A reply without tokens did not come from a model.
                self.model_calls += usize::from(reply.usage.input + reply.usage.output > 0);
                self.usage = self.usage.saturating_add(reply.usage);
                if matches!(task, ModelTask::Plan { .. }) {
                    self.plan_milliseconds += milliseconds;
                }
            }
            RunEvent::ModelFailed { message, usage, .. } => {
                self.model_task = None;
                self.usage = self.usage.saturating_add(*usage);
                self.model_problem = Some(message.clone());
            }
            RunEvent::Planned { plan, tools } => self.apply_plan(plan, tools),
            RunEvent::PlanRejected { problems } => {
                self.plan_problems = problems.iter().map(ToString::to_string).collect();
            }
            RunEvent::Ended { end, effects, review } => {
                self.model_task = None;
                self.end = Some(end.clone());
                (self.effects, self.review) = (effects.clone(), review.clone());
            }
            RunEvent::Resumed { .. } => {
                self.end = None;
                // The process that ran these is gone; they are restarted or resolved.
                let orphaned = self.rows.iter_mut().filter(|row| row.status == StepStatus::Running);
                orphaned.for_each(|row| row.status = StepStatus::Waiting);
            }
            RunEvent::StepStarted { step, .. }
            | RunEvent::StepEnded { step, .. }
            | RunEvent::StepRepaired { step, .. }
            | RunEvent::RepairFailed { step, .. }
            | RunEvent::StepResolved { step, .. }
            | RunEvent::Verified { step, .. }
            | RunEvent::ApprovalRequested { step, .. }
            | RunEvent::ApprovalDecided { step, .. } => {
                if let Some(row) = self.row_mut(step) {
                    row.apply(event, now);
                }
            }
            _ => {}
        }
    }

    /// Adds the steps of a plan and drops those of an earlier plan that were not started.
    fn apply_plan(&mut self, plan: &Plan, tools: &BTreeMap<String, PlannedTool>) {
        self.plan_problems.clear();
        self.plans.push((plan_outline(plan), std::mem::take(&mut self.plan_milliseconds)));
        self.rows.retain(|row| {
            row.status != StepStatus::Waiting || plan.steps.iter().any(|step| step.id == row.id)
        });
        for step in &plan.steps {
            if self.row(&step.id).is_none() {
                self.rows.push(StepRow::new(step, tools.get(&step.id)));
            }
        }
    }

    fn row_mut(&mut self, id: &str) -> Option<&mut StepRow> {
        self.rows.iter_mut().rev().find(|row| row.id == id)
    }

    /// The latest step with this id.
    pub(crate) fn row(&self, id: &str) -> Option<&StepRow> {
        self.rows.iter().rev().find(|row| row.id == id)
    }

    /// What the approval request with this id is about.
    pub(crate) fn approval_details(&self, request: ApprovalId) -> Option<&ApprovalDetails> {
        let approvals = self.rows.iter().filter_map(|row| row.approval.as_ref());
        approvals.rev().find(|(id, _)| *id == request).map(|(_, details)| &**details)
    }

    pub(crate) fn ids_with(&self, status: StepStatus) -> impl Iterator<Item = &str> {
        self.rows.iter().filter(move |row| row.status == status).map(|row| row.id.as_str())
    }

    /// The receipt of the run, and what a model says of its answer, in the language of the question. Empty for a run that only
    /// made a plan, is not over, or ended before there were receipts.
    pub(crate) fn receipt(&self) -> Vec<String> {
        let is_over = !matches!(self.end, None | Some(RunEnd::Planned | RunEnd::Suspended { .. }));
        let Some(effects) = self.effects.as_ref().filter(|_| is_over) else { return Vec::new() };
        let question = self.request.as_ref().map(|request| request.question.as_str()).unwrap_or_default();
        let language = Language::English.for_question(question);
        let mut lines = receipt_lines(effects, language);
        lines.extend(self.review.as_ref().map(|review| review_line(review, language)));
        lines
    }

    /// Whether some of the task was done: one of the planned changes or, if nothing was to be changed, one of the steps.
    pub(crate) fn is_partly_done(&self) -> bool {
        match self.effects.as_deref().unwrap_or_default() {
            [] => self.rows.iter().any(|row| row.status == StepStatus::Done),
            changes => changes.iter().any(|change| change.state == EffectState::Done),
        }
    }

    /// The number of steps, and of those whose result passed verification. Simulated steps are not counted.
    pub(crate) fn verification_counts(&self) -> (usize, usize) {
        let is_verified = |row: &&StepRow| row.verification.as_ref().is_some_and(|found| found.verified);
        let steps = || self.rows.iter().filter(|row| row.status != StepStatus::Simulated);
        (steps().count(), steps().filter(is_verified).count())
    }
}

impl StepRow {
    fn new(step: &Step, planned: Option<&PlannedTool>) -> Self {
        let source = planned.and_then(|planned| planned.source.as_ref()).map(ToString::to_string);
        Self {
            id: step.id.clone(),
            tool: if step.tool_type == NO_TOOL { "(model)".to_owned() } else { step.tool_type.clone() },
            source: source.unwrap_or_default(),
            description: step.description.clone(),
            status: StepStatus::Waiting,
            arguments: String::new(),
            detail: String::new(),
            hint: None,
            notes: planned.map(|planned| planned.notes.clone()).unwrap_or_default(),
            started: Duration::ZERO,
            milliseconds: None,
            verification: None,
            approval: None,
        }
    }

    fn apply(&mut self, event: &RunEvent, now: Duration) {
        match event {
            RunEvent::StepStarted { arguments_preview, notes, .. } => {
                self.status = StepStatus::Running;
                self.started = now;
                self.arguments.clone_from(arguments_preview);
                self.notes.clone_from(notes);
                self.detail.clear();
            }
            RunEvent::StepEnded { outcome, milliseconds, .. } => {
                self.milliseconds = Some(*milliseconds);
                self.apply_end(outcome);
            }
            RunEvent::StepRepaired { notes, .. } => {
                self.status = StepStatus::Waiting;
                // Old logs do not say what changed.
                let is_known = !notes.is_empty();
                self.detail = if is_known { notes.join("; ") } else { "arguments repaired".to_owned() };
                // They come again with the next call, and with its approval request.
                self.notes.clear();
                (self.milliseconds, self.verification) = (None, None);
            }
            RunEvent::Verified { verification, .. } => self.verification = Some(verification.clone()),
            RunEvent::ApprovalRequested { approval_id, text, details, .. } => {
                self.status = StepStatus::AwaitingApproval;
                self.approval = details.clone().map(|details| (*approval_id, details));
                // The text quotes names and arguments that a server or a model chose: nothing is read out of it.
                self.detail = match details {
                    Some(details) => format!("{}: {}", details.effects, details.arguments),
                    None => text.clone(),
                };
            }
            RunEvent::ApprovalDecided { allowed, by, .. } => {
                self.status = StepStatus::Waiting;
                self.detail = format!("{} by {by}", if *allowed { "approved" } else { "denied" });
            }
            RunEvent::RepairFailed { reason, .. } => self.detail = format!("{} ({reason})", self.detail),
            RunEvent::StepResolved { resolution, .. } => {
                (self.status, self.detail) = match resolution {
                    Resolution::Done => (StepStatus::Done, "resolved by the user: took effect".to_owned()),
                    Resolution::NotDone => {
                        (StepStatus::Waiting, "resolved by the user: did not take effect".to_owned())
                    }
                };
            }
            _ => {}
        }
    }

    fn apply_end(&mut self, outcome: &StepEnd) {
        self.hint = None;
        (self.status, self.detail) = match outcome {
            StepEnd::Done { source, preview, size, reasoned } => {
                if let Some(source) = source {
                    self.source = source.to_string();
                }
                if *reasoned {
                    self.source = "(model)".to_owned();
                }
                let shown = preview.chars().count();
                let is_truncated = *size > shown && shown > 0;
                let size =
                    is_truncated.then(|| format!(" ({} characters)", toolyard_core::group_digits(*size)));
                (StepStatus::Done, format!("{preview}{}", size.unwrap_or_default()))
            }
            StepEnd::Failed { message, hint, .. } => {
                self.hint.clone_from(hint);
                (StepStatus::Failed, message.clone())
            }
            StepEnd::Skipped { because } => (StepStatus::Skipped, format!("skipped: {because} failed")),
            StepEnd::Denied { by } => (StepStatus::Denied, format!("denied by {by}")),
            StepEnd::Unknown { message } => (StepStatus::Unknown, message.clone()),
            StepEnd::Simulated => (StepStatus::Simulated, format!("would be called with {}", self.arguments)),
            _ => (StepStatus::Unknown, "ended in an unknown way".to_owned()),
        };
    }
}
