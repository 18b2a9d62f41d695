//! What may be done next in a run, derived from its state.

use super::{
    event::{ModelTask, RunEnd, StepEnd},
    request::RunRequest,
    state::{PlanningState, Run},
    step::{ApprovalState, StepPhase, StepRun},
};

/// Something that may be done now. The driver tracks which tasks are in flight.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Request a plan from a model, or process its reply.
    Plan {
        /// 0 for the first plan.
        round: usize,
        /// Whether the first attempt of this round was rejected.
        repair: bool,
    },
    /// Call a step's tool.
    Call(String),
    /// Let a model produce the result of a step.
    Reason(String),
    /// Verify a step's result by rule.
    Verify(String),
    /// Let a model judge a step's result.
    Judge(String),
    /// Request new arguments for a step from a model.
    RepairStep(String),
    /// Request an approval for a step's call.
    RequestApproval(String),
    /// End a step whose call was denied.
    Deny(String),
    /// End a step that can no longer start.
    Skip {
        /// The step.
        step: String,
        /// The step that failed.
        because: String,
    },
    /// End a step whose call the dry run must not make.
    Simulate(String),
    /// Request the final answer from a model.
    Answer,
    /// Ask a model whether the answer is what was asked for.
    Review,
    /// End the run as failed: no step succeeded.
    Fail,
    /// End the run.
    End(RunEnd),
}

impl Task {
    /// The model request of the task, if it has one.
    pub fn model_task(&self) -> Option<ModelTask> {
        match self {
            Self::Plan { round, repair } => Some(ModelTask::Plan { round: *round, repair: *repair }),
            Self::Reason(step) => Some(ModelTask::Reason { step: step.clone() }),
            Self::RepairStep(step) => Some(ModelTask::Repair { step: step.clone() }),
            Self::Judge(step) => Some(ModelTask::Judge { step: step.clone() }),
            Self::Answer => Some(ModelTask::Answer),
            Self::Review => Some(ModelTask::Review),
            _ => None,
        }
    }
}

enum StepReadiness {
    Now,
    NotYet,
    /// The step `because` has no usable result.
    Never {
        because: String,
    },
    /// The dependency `because` was simulated.
    Simulated {
        because: String,
    },
}

impl Run {
    /// What may be done now, in the order of the plan, including tasks that are in flight. An empty list, or one with
    /// nothing but [`Task::RequestApproval`], means that the run waits for a user.
    pub fn tasks(&self) -> Vec<Task> {
        let (Some(request), None) = (&self.request, &self.end) else { return Vec::new() };
        if self.answered.is_some() {
            return vec![Task::Review];
        }
        let round = self.round;
        match self.planning {
            PlanningState::Needed => return vec![Task::Plan { round, repair: false }],
            PlanningState::RepairNeeded => return vec![Task::Plan { round, repair: true }],
            PlanningState::Planned if request.plan_only => return vec![Task::End(RunEnd::Planned)],
            PlanningState::Planned | PlanningState::Failed => {}
        }
        let tasks: Vec<Task> = self.steps.iter().filter_map(|step| self.task_of(step, request)).collect();
        if !tasks.is_empty() || !self.waiting_for().is_empty() {
            return tasks;
        }
        let blocked: Vec<Task> = self.steps.iter().filter_map(skip_blocked).collect();
        if blocked.is_empty() { vec![self.conclusion(request)] } else { blocked }
    }

    fn task_of(&self, step: &StepRun, request: &RunRequest) -> Option<Task> {
        let id = || step.step.id.clone();
        match &step.phase {
            StepPhase::Waiting => match (&step.approval, self.readiness(step, request)) {
                (ApprovalState::Requested { .. }, _) => Some(Task::RequestApproval(id())),
                (ApprovalState::Denied { .. }, _) => Some(Task::Deny(id())),
                (_, StepReadiness::Now) => Some(start_task(step)),
                (_, StepReadiness::NotYet) => None,
                (_, StepReadiness::Never { because }) => Some(Task::Skip { step: id(), because }),
                (_, StepReadiness::Simulated { because }) if step.tool.read_only || step.is_reasoning() => {
                    Some(Task::Skip { step: id(), because })
                }
                (_, StepReadiness::Simulated { .. }) => Some(Task::Simulate(id())),
            },
            StepPhase::Started => Some(match &step.approval {
                ApprovalState::Requested { .. } => Task::RequestApproval(id()),
                ApprovalState::Denied { .. } => Task::Deny(id()),
                ApprovalState::None | ApprovalState::Allowed { .. } => start_task(step),
            }),
            StepPhase::Ended(StepEnd::Done { .. }) if step.verification.is_none() => Some(Task::Verify(id())),
            StepPhase::Ended(StepEnd::Done { .. }) if step.needs_judgement(request.judge) => {
                Some(Task::Judge(id()))
            }
            StepPhase::Ended(_) if step.needs_repair() => Some(Task::RepairStep(id())),
            StepPhase::Ended(_) => None,
        }
    }

    /// A step waits for all its dependencies, and never starts if one of them has no usable result.
    fn readiness(&self, step: &StepRun, request: &RunRequest) -> StepReadiness {
        let mut readiness = StepReadiness::Now;
        for id in &step.step.dependencies {
            let Some(other) = self.step(id) else {
                return StepReadiness::Never { because: id.clone() };
            };
            if other.ended_without_value() {
                return StepReadiness::Never { because: root_cause(other) };
            }
            if other.is_simulated() {
                readiness = StepReadiness::Simulated { because: id.clone() };
            } else if !other.is_usable(request.judge) {
                return StepReadiness::NotYet;
            }
        }
        readiness
    }

    /// What follows when all steps have ended: another plan, an answer, or failure.
    fn conclusion(&self, request: &RunRequest) -> Task {
        let failed = self.steps.iter().any(|step| step.round == self.round && step.is_failed());
        if failed && self.planning == PlanningState::Planned && self.round < request.limits.replans {
            return Task::Plan { round: self.round + 1, repair: false };
        }
        let has_result = |step: &StepRun| step.has_value() || step.is_simulated();
        if self.steps.iter().any(has_result) { Task::Answer } else { Task::Fail }
    }

    pub(super) fn needs_plan(&self, round: usize, repair: bool) -> bool {
        self.tasks() == [Task::Plan { round, repair }]
    }
}

fn start_task(step: &StepRun) -> Task {
    let id = step.step.id.clone();
    if step.is_reasoning() { Task::Reason(id) } else { Task::Call(id) }
}

/// Skips a step in a dependency cycle, which never starts. Checked plans have no cycles.
fn skip_blocked(step: &StepRun) -> Option<Task> {
    let because = step.step.dependencies.first().cloned().unwrap_or_default();
    (step.phase == StepPhase::Waiting).then(|| Task::Skip { step: step.step.id.clone(), because })
}

/// The step whose failure made `step` unusable.
fn root_cause(step: &StepRun) -> String {
    match &step.phase {
        StepPhase::Ended(StepEnd::Skipped { because }) => because.clone(),
        _ => step.step.id.clone(),
    }
}
