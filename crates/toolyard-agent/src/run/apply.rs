//! Folds transitions into what is known of a run, and refuses those that cannot follow.

use std::collections::BTreeMap;

use toolyard_core::Resolution;
use toolyard_model::{ModelReply, Usage};

use super::{Approval, Phase, Planning, Repair, Run, RunError, StepRun, Unanswered};
use crate::{ModelTask, Permission, Plan, RunEnd, RunEvent, StepEnd, StepFacts};

impl Run {
    /// Takes a transition. An impossible one is refused and changes nothing.
    pub fn apply(&mut self, event: &RunEvent) -> Result<(), RunError> {
        self.may_follow(event)?;
        match event {
            RunEvent::Asked { ask } => self.ask = Some(ask.clone()),
            RunEvent::Resumed { .. } => self.end = None,
            RunEvent::ModelAnswered { task, reply, .. } => return self.answered(task, reply),
            RunEvent::ModelFailed { task, message, hint, usage } => {
                return self.unanswered_by_model(task, message, hint.as_ref(), *usage);
            }
            RunEvent::Planned { plan, facts } => return self.planned(plan, facts),
            RunEvent::PlanRefused { problems } => return self.plan_refused(problems.clone()),
            RunEvent::Ended { end } => self.end = Some(end.clone()),
            RunEvent::StepStarted { step, call, .. } => return self.started(step, call),
            RunEvent::StepEnded { step, outcome, milliseconds } => {
                return self.ended(step, outcome, *milliseconds);
            }
            RunEvent::StepRepaired { .. }
            | RunEvent::RepairRefused { .. }
            | RunEvent::StepSettled { .. }
            | RunEvent::Verified { .. }
            | RunEvent::ApprovalAsked { .. }
            | RunEvent::ApprovalGiven { .. } => return self.about_step(event),
        }
        Ok(())
    }

    fn may_follow(&self, event: &RunEvent) -> Result<(), RunError> {
        match (event, &self.ask, &self.end) {
            (RunEvent::Asked { .. }, None, None) => Ok(()),
            // Nobody knows what it was about, and nobody will.
            (RunEvent::Ended { end: RunEnd::Cancelled }, None, None) => Ok(()),
            (_, None, Some(_)) => Err(RunError::Over),
            (RunEvent::Asked { .. }, Some(_), _) => Err(RunError::Impossible("it was asked before")),
            (_, None, _) => Err(RunError::NotBegun),
            (RunEvent::Resumed { .. }, _, None | Some(RunEnd::Suspended { .. })) => Ok(()),
            // Whoever gives up a suspended run need not resume it first.
            (RunEvent::Ended { end: RunEnd::Cancelled }, _, Some(RunEnd::Suspended { .. })) => Ok(()),
            (_, _, Some(_)) => Err(RunError::Over),
            (_, _, None) => Ok(()),
        }
    }

    fn answered(&mut self, task: &ModelTask, reply: &ModelReply) -> Result<(), RunError> {
        self.model_called(task, reply.usage)?;
        self.replies.retain(|(known, _)| known != task);
        self.replies.push((task.clone(), reply.clone()));
        Ok(())
    }

    fn unanswered_by_model(
        &mut self,
        task: &ModelTask,
        message: &str,
        hint: Option<&String>,
        usage: Usage,
    ) -> Result<(), RunError> {
        self.model_called(task, usage)?;
        match task {
            ModelTask::Plan { .. } => self.planning = Planning::GivenUp,
            ModelTask::Judge { step } => self.step_mut(step)?.judged = true,
            ModelTask::Repair { step } => self.step_mut(step)?.repair = Repair::Refused,
            ModelTask::Reason { .. } | ModelTask::Answer => {}
        }
        let unanswered = Unanswered { task: task.clone(), message: message.to_owned(), hint: hint.cloned() };
        self.unanswered.push(unanswered);
        Ok(())
    }

    /// A model was asked: counts it, and sees to it that this could be asked.
    fn model_called(&mut self, task: &ModelTask, usage: Usage) -> Result<(), RunError> {
        match task {
            ModelTask::Plan { round, repair } => {
                if !self.may_plan(*round, *repair) {
                    return Err(RunError::Impossible("nobody wanted this plan"));
                }
                self.round = *round;
                self.planning = if *repair { Planning::RepairWanted } else { Planning::Wanted };
            }
            ModelTask::Reason { step } | ModelTask::Repair { step } | ModelTask::Judge { step } => {
                self.step_mut(step)?;
            }
            ModelTask::Answer => {}
        }
        self.spent.model_calls = self.spent.model_calls.saturating_add(1);
        self.spent.usage = self.spent.usage.plus(usage);
        Ok(())
    }

    fn planned(&mut self, plan: &Plan, facts: &BTreeMap<String, StepFacts>) -> Result<(), RunError> {
        if !matches!(self.planning, Planning::Wanted | Planning::RepairWanted) {
            return Err(RunError::Impossible("there is a plan already"));
        }
        self.planning = Planning::Planned;
        self.problems.clear();
        self.refused = None;
        self.forget_replies(|task| matches!(task, ModelTask::Plan { .. }));
        self.steps.retain(|step| step.has_value() || step.is_rehearsed());
        for step in &plan.steps {
            let same = |known: &&StepRun| {
                known.step.tool_type == step.tool_type && known.step.arguments == step.arguments
            };
            if self.step(&step.id).filter(same).is_some() {
                continue;
            }
            self.steps.retain(|known| known.step.id != step.id);
            let facts = facts.get(&step.id).cloned().unwrap_or(StepFacts {
                source: None,
                read_only: false,
                permission: Permission::Ask,
                notes: Vec::new(),
            });
            self.forget_step(&step.id);
            let attempt = self.next_attempt(&step.id);
            self.steps.push(StepRun::new(step.clone(), facts, self.round, attempt));
            self.spent.steps = self.spent.steps.saturating_add(1);
        }
        Ok(())
    }

    /// What models said, or did not say, about an earlier step of this name is about another step.
    fn forget_step(&mut self, id: &str) {
        let is_about = |task: &ModelTask| match task {
            ModelTask::Reason { step } | ModelTask::Repair { step } | ModelTask::Judge { step } => step == id,
            ModelTask::Plan { .. } | ModelTask::Answer => false,
        };
        self.forget_replies(is_about);
        self.unanswered.retain(|unanswered| !is_about(&unanswered.task));
    }

    fn plan_refused(&mut self, problems: Vec<crate::PlanProblem>) -> Result<(), RunError> {
        let task = match self.planning {
            Planning::Wanted => ModelTask::Plan { round: self.round, repair: false },
            Planning::RepairWanted => ModelTask::Plan { round: self.round, repair: true },
            Planning::Planned | Planning::GivenUp => {
                return Err(RunError::Impossible("there is no plan to refuse"));
            }
        };
        self.planning = match self.planning {
            Planning::Wanted => Planning::RepairWanted,
            _ => Planning::GivenUp,
        };
        self.problems = problems;
        self.refused = self.reply(&task).map(said);
        self.forget_replies(|known| *known == task);
        Ok(())
    }

    fn started(&mut self, id: &str, call: &str) -> Result<(), RunError> {
        let step = self.step_mut(id)?;
        if step.phase != Phase::Waiting {
            return Err(RunError::Impossible("a step is started once"));
        }
        step.phase = Phase::Started;
        step.call = call.to_owned();
        if matches!(step.approval, Approval::Asked { .. }) {
            // The rules allow it by now.
            step.approval = Approval::None;
        }
        if !call.is_empty() {
            self.spent.calls = self.spent.calls.saturating_add(1);
            *self.identical.entry(call.to_owned()).or_default() += 1;
        }
        Ok(())
    }

    fn ended(&mut self, id: &str, outcome: &StepEnd, milliseconds: u64) -> Result<(), RunError> {
        let step = self.step_mut(id)?;
        let called = matches!(outcome, StepEnd::Done { .. } | StepEnd::Unknown { .. });
        match step.phase {
            Phase::Ended(_) => return Err(RunError::Impossible("a step ends once")),
            Phase::Waiting if called => return Err(RunError::Impossible("it was not started")),
            Phase::Waiting | Phase::Started => {}
        }
        step.phase = Phase::Ended(outcome.clone());
        step.milliseconds = milliseconds;
        Ok(())
    }

    /// What only changes one step.
    fn about_step(&mut self, event: &RunEvent) -> Result<(), RunError> {
        match event {
            RunEvent::StepRepaired { step, arguments } => self.repaired(step, arguments),
            RunEvent::RepairRefused { step, .. } => {
                self.step_mut(step)?.repair = Repair::Refused;
                self.forget_replies(|task| *task == ModelTask::Repair { step: step.clone() });
                Ok(())
            }
            RunEvent::StepSettled { step, resolution } => self.settled(step, *resolution),
            RunEvent::Verified { step, verification } => {
                let known = self.step_mut(step)?;
                if !matches!(known.phase, Phase::Ended(StepEnd::Done { .. })) {
                    return Err(RunError::Impossible("only a result is verified"));
                }
                known.verification = Some(verification.clone());
                let judge = ModelTask::Judge { step: step.clone() };
                if self.reply(&judge).is_some() {
                    self.step_mut(step)?.judged = true;
                    self.forget_replies(|task| *task == judge);
                }
                Ok(())
            }
            RunEvent::ApprovalAsked { step, question, tool, call, .. } => {
                let known = self.step_mut(step)?;
                if known.phase.is_ended() {
                    return Err(RunError::Impossible("nobody is asked about what is over"));
                }
                let (call, tool) = (call.clone(), tool.clone());
                known.approval = Approval::Asked { question: *question, call, tool };
                Ok(())
            }
            RunEvent::ApprovalGiven { step, allowed, always, by } => {
                self.decided(step, *allowed, *always, by)
            }
            _ => Err(RunError::Impossible("it is about no step")),
        }
    }

    fn repaired(
        &mut self,
        id: &str,
        arguments: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), RunError> {
        if !self.step_mut(id)?.wants_repair() {
            return Err(RunError::Impossible("nobody wanted other arguments"));
        }
        let attempt = self.next_attempt(id);
        self.forget_replies(|task| *task == ModelTask::Repair { step: id.to_owned() });
        let step = self.step_mut(id)?;
        step.step.arguments = arguments.clone();
        step.attempt = attempt;
        // Other arguments are not those that were mended.
        step.facts.notes.clear();
        step.phase = Phase::Waiting;
        // What a person allowed was another call.
        step.approval = Approval::None;
        step.repair = Repair::Done;
        step.verification = None;
        step.judged = false;
        Ok(())
    }

    /// The journal knows what the person said; the step's call finds it there.
    fn settled(&mut self, id: &str, resolution: Resolution) -> Result<(), RunError> {
        let step = self.step_mut(id)?;
        if !step.phase.is_unknown() {
            return Err(RunError::Impossible("its outcome is known"));
        }
        step.phase = match resolution {
            Resolution::Done => Phase::Started,
            Resolution::NotDone => Phase::Waiting,
        };
        Ok(())
    }

    fn decided(&mut self, id: &str, allowed: bool, always: bool, by: &str) -> Result<(), RunError> {
        let step = self.step_mut(id)?;
        let Approval::Asked { call, tool, .. } = step.approval.clone() else {
            return Err(RunError::Impossible("nobody was asked"));
        };
        step.approval =
            if allowed { Approval::Allowed { call } } else { Approval::Refused { by: by.to_owned() } };
        if allowed && always {
            self.allowed.insert(tool);
        }
        Ok(())
    }

    fn next_attempt(&mut self, id: &str) -> usize {
        let attempts = self.attempts.entry(id.to_owned()).or_default();
        *attempts = attempts.saturating_add(1);
        *attempts
    }

    fn forget_replies(&mut self, done: impl Fn(&ModelTask) -> bool) {
        self.replies.retain(|(task, _)| !done(task));
    }

    fn step_mut(&mut self, id: &str) -> Result<&mut StepRun, RunError> {
        let step = self.steps.iter_mut().find(|step| step.step.id == id);
        step.ok_or_else(|| RunError::UnknownStep(id.to_owned()))
    }
}

/// What a model said, calls included, for it to see again.
fn said(reply: &ModelReply) -> String {
    let calls = reply.calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
    let parts: Vec<String> =
        [reply.text.clone()].into_iter().filter(|text| !text.is_empty()).chain(calls).collect();
    parts.join("\n")
}
