//! What may be done next in a run: a pure decision over what is known of it.

use super::{Approval, Phase, Planning, Run, StepRun};
use crate::{Ask, ModelTask, RunEnd, StepEnd};

/// Something that may be done now. Whoever drives the run remembers which are under way.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Ask a model for a plan, or read what it said.
    Plan {
        /// 0 for the first.
        round: usize,
        /// Whether it is the second try.
        repair: bool,
    },
    /// Carry out a step by its tool.
    Call(String),
    /// Let a model reason a step out.
    Reason(String),
    /// Look at a step's result.
    Verify(String),
    /// Let a model look at a step's result.
    Judge(String),
    /// Ask a model for other arguments of a step.
    RepairStep(String),
    /// Ask a person whether a step's call may be made.
    AskPerson(String),
    /// End a step that a person said no to.
    Deny(String),
    /// End a step that cannot be begun any more.
    Skip {
        /// Which.
        step: String,
        /// The step that failed.
        because: String,
    },
    /// End a step that would change something, in a run that may not.
    Rehearse(String),
    /// Ask a model for the final answer.
    Answer,
    /// Nothing succeeded: say so.
    GiveUp,
    /// End the run.
    End(RunEnd),
}

impl Task {
    /// The step it is about.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::Call(step)
            | Self::Reason(step)
            | Self::Verify(step)
            | Self::Judge(step)
            | Self::RepairStep(step)
            | Self::AskPerson(step)
            | Self::Deny(step)
            | Self::Rehearse(step)
            | Self::Skip { step, .. } => Some(step),
            Self::Plan { .. } | Self::Answer | Self::GiveUp | Self::End(_) => None,
        }
    }

    /// What a model is asked for it, if one is.
    pub fn model_task(&self) -> Option<ModelTask> {
        match self {
            Self::Plan { round, repair } => Some(ModelTask::Plan { round: *round, repair: *repair }),
            Self::Reason(step) => Some(ModelTask::Reason { step: step.clone() }),
            Self::RepairStep(step) => Some(ModelTask::Repair { step: step.clone() }),
            Self::Judge(step) => Some(ModelTask::Judge { step: step.clone() }),
            Self::Answer => Some(ModelTask::Answer),
            _ => None,
        }
    }
}

/// Whether a step may begin.
enum Readiness {
    Now,
    NotYet,
    Never {
        because: String,
    },
    /// Something before it would have changed something, and was not called.
    Rehearsed {
        because: String,
    },
}

impl Run {
    /// What may be begun now, in the order of the plan. Tasks that were begun and not told about are among them.
    /// Nothing is left to do without persons when there is none, or nothing but questions to persons.
    pub fn tasks(&self) -> Vec<Task> {
        let (Some(ask), None) = (&self.ask, &self.end) else { return Vec::new() };
        let round = self.round;
        match self.planning {
            Planning::Wanted => return vec![Task::Plan { round, repair: false }],
            Planning::RepairWanted => return vec![Task::Plan { round, repair: true }],
            Planning::Planned if ask.plan_only => return vec![Task::End(RunEnd::Planned)],
            Planning::Planned | Planning::GivenUp => {}
        }
        let tasks: Vec<Task> = self.steps.iter().filter_map(|step| self.task_of(step, ask)).collect();
        if !tasks.is_empty() || !self.waiting().is_empty() {
            return tasks;
        }
        let stuck: Vec<Task> = self.steps.iter().filter_map(|step| self.stuck(step)).collect();
        if stuck.is_empty() { vec![self.conclusion(ask)] } else { stuck }
    }

    fn task_of(&self, step: &StepRun, ask: &Ask) -> Option<Task> {
        let id = || step.step.id.clone();
        match &step.phase {
            Phase::Waiting => match (&step.approval, self.readiness(step, ask)) {
                (Approval::Asked { .. }, _) => Some(Task::AskPerson(id())),
                (Approval::Refused { .. }, _) => Some(Task::Deny(id())),
                (_, Readiness::Now) => Some(begin(step)),
                (_, Readiness::NotYet) => None,
                (_, Readiness::Never { because }) => Some(Task::Skip { step: id(), because }),
                (_, Readiness::Rehearsed { because }) if step.facts.read_only || step.is_reasoning() => {
                    Some(Task::Skip { step: id(), because })
                }
                (_, Readiness::Rehearsed { .. }) => Some(Task::Rehearse(id())),
            },
            Phase::Started => Some(match &step.approval {
                Approval::Asked { .. } => Task::AskPerson(id()),
                Approval::Refused { .. } => Task::Deny(id()),
                Approval::None | Approval::Allowed { .. } => begin(step),
            }),
            Phase::Ended(StepEnd::Done { .. }) if step.verification.is_none() => Some(Task::Verify(id())),
            Phase::Ended(StepEnd::Done { .. }) if step.wants_judge(ask.judge) => Some(Task::Judge(id())),
            Phase::Ended(_) if step.wants_repair() => Some(Task::RepairStep(id())),
            Phase::Ended(_) => None,
        }
    }

    /// A step waits for all it depends on, and is never begun when one of these brought nothing.
    fn readiness(&self, step: &StepRun, ask: &Ask) -> Readiness {
        let mut readiness = Readiness::Now;
        for name in &step.step.dependencies {
            let Some(other) = self.step(name) else {
                return Readiness::Never { because: name.clone() };
            };
            if other.is_lost() {
                return Readiness::Never { because: root_of(other) };
            }
            if other.is_rehearsed() {
                readiness = Readiness::Rehearsed { because: name.clone() };
            } else if !other.is_usable(ask.judge) {
                return Readiness::NotYet;
            }
        }
        readiness
    }

    /// Steps that wait for each other are never begun; a plan that was checked has none.
    fn stuck(&self, step: &StepRun) -> Option<Task> {
        let because = step.step.dependencies.first().cloned().unwrap_or_default();
        (step.phase == Phase::Waiting).then(|| Task::Skip { step: step.step.id.clone(), because })
    }

    /// Everything is settled: another plan, an answer, or the end.
    fn conclusion(&self, ask: &Ask) -> Task {
        let failed = self.steps.iter().any(|step| step.round == self.round && step.is_failed());
        if failed && self.planning == Planning::Planned && self.round < ask.caps.replans {
            return Task::Plan { round: self.round + 1, repair: false };
        }
        let brought = |step: &StepRun| step.has_value() || step.is_rehearsed();
        if self.steps.iter().any(brought) { Task::Answer } else { Task::GiveUp }
    }

    /// Whether a model may be asked for this plan now.
    pub(super) fn may_plan(&self, round: usize, repair: bool) -> bool {
        self.tasks() == [Task::Plan { round, repair }]
    }
}

fn begin(step: &StepRun) -> Task {
    let id = step.step.id.clone();
    if step.is_reasoning() { Task::Reason(id) } else { Task::Call(id) }
}

/// The step whose failure is behind one that brought nothing.
fn root_of(step: &StepRun) -> String {
    match &step.phase {
        Phase::Ended(StepEnd::Skipped { because }) => because.clone(),
        _ => step.step.id.clone(),
    }
}
