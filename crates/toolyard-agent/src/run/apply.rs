//! Folds events into the state of a run, and rejects events that are not valid in it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolyard_core::Resolution;
use toolyard_model::{ModelReply, Usage};

use super::{
    data_sources::DataSources,
    event::{ModelTask, Permission, PlannedTool, RunEnd, RunEvent, StepEnd, Verification},
    state::{ModelFailure, PlanningState, Run, RunError},
    step::{ApprovalState, RepairState, StepPhase, StepRun},
};
use crate::{Plan, PlanProblem};

impl Run {
    /// Applies an event. An invalid event is rejected and changes nothing.
    pub fn apply(&mut self, event: &RunEvent) -> Result<(), RunError> {
        self.check_order(event)?;
        match event {
            RunEvent::Requested { request } => {
                self.data_sources = request.history_sources();
                self.request = Some(request.clone());
            }
            RunEvent::Resumed { .. } => {
                self.end = None;
                let called = |step: &&mut StepRun| step.phase == StepPhase::Started && !step.call.is_empty();
                self.steps.iter_mut().filter(called).for_each(|step| step.was_interrupted = true);
            }
            RunEvent::Answered { end } => {
                if self.answered.is_some() {
                    return Err(RunError::Invalid("the run already has an answer"));
                }
                self.answered = Some(end.clone());
            }
            RunEvent::Ended { end, .. } => self.end = Some(end.clone()),
            RunEvent::ModelReplied { task, reply, .. } => self.apply_model_replied(task, reply)?,
            RunEvent::ModelFailed { task, message, hint, kind, usage, sent: _ } => {
                self.count_model_call(task, *usage)?;
                let (message, hint) = (message.clone(), hint.clone());
                self.apply_model_failed(ModelFailure { task: task.clone(), message, hint, kind: *kind })?;
            }
            RunEvent::Planned { plan, tools } => self.apply_planned(plan, tools)?,
            RunEvent::PlanRejected { problems } => self.apply_plan_rejected(problems)?,
            RunEvent::ToolsSearched { words } => self.apply_tools_searched(words)?,
            RunEvent::StepStarted { step, call, target, may_change, .. } => {
                self.apply_step_started(step, call, target, *may_change)?;
            }
            RunEvent::StepEnded { step, outcome, milliseconds } => {
                self.apply_step_ended(step, outcome, *milliseconds)?;
            }
            RunEvent::StepRepaired { step, arguments, notes } => {
                self.apply_step_repaired(step, arguments, notes)?;
            }
            RunEvent::RepairFailed { step, .. } => {
                self.step_mut(step)?.repair = RepairState::Failed;
                self.forget_replies(|task| *task == ModelTask::Repair { step: step.clone() });
            }
            RunEvent::StepResolved { step, resolution } => self.apply_step_resolved(step, *resolution)?,
            RunEvent::Verified { step, verification } => self.apply_verified(step, verification)?,
            RunEvent::ApprovalRequested { step, approval_id, tool, call, details, .. } => {
                let step = self.step_mut(step)?;
                if step.phase.is_ended() {
                    return Err(RunError::Invalid("the step has already ended"));
                }
                let (call, tool, details) = (call.clone(), tool.clone(), details.clone());
                step.approval = ApprovalState::Requested { id: *approval_id, call, tool, details };
            }
            RunEvent::ApprovalDecided { step, allowed, always, by } => {
                self.apply_approval_decided(step, *allowed, *always, by)?;
            }
        }
        Ok(())
    }

    fn check_order(&self, event: &RunEvent) -> Result<(), RunError> {
        match (event, &self.request, &self.end) {
            (RunEvent::Requested { .. }, None, None) => Ok(()),
            // Its process died before it logged the request.
            (RunEvent::Ended { end: RunEnd::Cancelled, .. }, None, None) => Ok(()),
            (_, None, Some(_)) => Err(RunError::Ended),
            (RunEvent::Requested { .. }, Some(_), _) => {
                Err(RunError::Invalid("the run already has a request"))
            }
            (_, None, _) => Err(RunError::NotRequested),
            (RunEvent::Resumed { .. }, _, None | Some(RunEnd::Suspended { .. })) => Ok(()),
            // A suspended run can be cancelled without resuming it.
            (RunEvent::Ended { end: RunEnd::Cancelled, .. }, _, Some(RunEnd::Suspended { .. })) => Ok(()),
            (_, _, Some(_)) => Err(RunError::Ended),
            (_, _, None) => Ok(()),
        }
    }

    fn apply_model_replied(&mut self, task: &ModelTask, reply: &ModelReply) -> Result<(), RunError> {
        self.count_model_call(task, reply.usage)?;
        self.replies.retain(|(other, _)| other != task);
        self.replies.push((task.clone(), reply.clone()));
        Ok(())
    }

    fn apply_model_failed(&mut self, failure: ModelFailure) -> Result<(), RunError> {
        match &failure.task {
            ModelTask::Plan { .. } => self.planning = PlanningState::Failed,
            ModelTask::Judge { step } => self.step_mut(step)?.judged = true,
            ModelTask::Repair { step } => self.step_mut(step)?.repair = RepairState::Failed,
            ModelTask::Reason { .. } | ModelTask::Answer | ModelTask::Review => {}
        }
        self.model_failures.push(failure);
        Ok(())
    }

    /// Checks that this model request was possible, and counts it.
    fn count_model_call(&mut self, task: &ModelTask, usage: Usage) -> Result<(), RunError> {
        match task {
            ModelTask::Plan { round, repair } => {
                if !self.needs_plan(*round, *repair) {
                    return Err(RunError::Invalid("this plan was not needed"));
                }
                self.round = *round;
                self.planning = if *repair { PlanningState::RepairNeeded } else { PlanningState::Needed };
            }
            ModelTask::Reason { step } | ModelTask::Repair { step } | ModelTask::Judge { step } => {
                self.step_mut(step)?;
            }
            ModelTask::Answer | ModelTask::Review => {}
        }
        self.usage.model_calls = self.usage.model_calls.saturating_add(1);
        self.usage.model = self.usage.model.saturating_add(usage);
        Ok(())
    }

    fn apply_planned(&mut self, plan: &Plan, tools: &BTreeMap<String, PlannedTool>) -> Result<(), RunError> {
        if !matches!(self.planning, PlanningState::Needed | PlanningState::RepairNeeded) {
            return Err(RunError::Invalid("the round already has a plan"));
        }
        self.planning = PlanningState::Planned;
        self.problems.clear();
        self.rejected_reply = None;
        self.forget_replies(|task| matches!(task, ModelTask::Plan { .. }));
        let (kept, dropped) = std::mem::take(&mut self.steps)
            .into_iter()
            .partition(|step| step.has_value() || step.is_simulated());
        self.steps = kept;
        self.dropped_steps.extend::<Vec<StepRun>>(dropped);
        for step in &plan.steps {
            let is_same_call = |other: &&StepRun| {
                other.step.tool_type == step.tool_type && other.step.arguments == step.arguments
            };
            if self.step(&step.id).filter(is_same_call).is_some() {
                continue;
            }
            // What it did stays on the receipt.
            let same_id = self.steps.extract_if(.., |other| other.step.id == step.id);
            self.dropped_steps.extend(same_id);
            let tool = tools.get(&step.id).cloned().unwrap_or(PlannedTool {
                source: None,
                read_only: false,
                permission: Permission::Ask,
                reads_private: true,
                open_world: true,
                notes: Vec::new(),
            });
            self.forget_step(&step.id);
            let attempt = self.next_attempt(&step.id);
            let written_from = self.data_sources.clone();
            self.steps.push(StepRun::new(step.clone(), tool, self.round, attempt, written_from));
            self.usage.steps = self.usage.steps.saturating_add(1);
        }
        Ok(())
    }

    /// Drops replies and failures about an earlier step with this id.
    fn forget_step(&mut self, id: &str) {
        let is_about = |task: &ModelTask| match task {
            ModelTask::Reason { step } | ModelTask::Repair { step } | ModelTask::Judge { step } => step == id,
            ModelTask::Plan { .. } | ModelTask::Answer | ModelTask::Review => false,
        };
        self.forget_replies(is_about);
        self.model_failures.retain(|failure| !is_about(&failure.task));
    }

    fn apply_plan_rejected(&mut self, problems: &[PlanProblem]) -> Result<(), RunError> {
        let task = match self.planning {
            PlanningState::Needed => ModelTask::Plan { round: self.round, repair: false },
            PlanningState::RepairNeeded => ModelTask::Plan { round: self.round, repair: true },
            PlanningState::Planned | PlanningState::Failed => {
                return Err(RunError::Invalid("there is no plan to reject"));
            }
        };
        self.planning = match self.planning {
            PlanningState::Needed => PlanningState::RepairNeeded,
            _ => PlanningState::Failed,
        };
        self.problems = problems.to_vec();
        self.rejected_reply = self.reply(&task).map(reply_text);
        self.forget_replies(|other| *other == task);
        Ok(())
    }

    fn apply_tools_searched(&mut self, words: &str) -> Result<(), RunError> {
        if !matches!(self.planning, PlanningState::Needed | PlanningState::RepairNeeded) {
            return Err(RunError::Invalid("no plan is needed that a search could help"));
        }
        self.tool_searches.push(words.to_owned());
        self.forget_replies(|task| matches!(task, ModelTask::Plan { .. }));
        Ok(())
    }

    fn apply_step_started(
        &mut self,
        id: &str,
        call: &str,
        target: &str,
        may_change: bool,
    ) -> Result<(), RunError> {
        let is_disclosure =
            !call.is_empty() && self.step(id).is_some_and(|step| self.is_unapproved_disclosure(step));
        let step = self.step_mut(id)?;
        if step.phase != StepPhase::Waiting {
            return Err(RunError::Invalid("the step was already started"));
        }
        step.phase = StepPhase::Started;
        step.call = call.to_owned();
        step.target = target.to_owned();
        step.calls_changing_tool |= may_change;
        if matches!(step.approval, ApprovalState::Requested { .. }) {
            // The rules were changed and allow the call now.
            step.approval = ApprovalState::None;
        }
        self.unapproved_disclosures += usize::from(is_disclosure);
        if !call.is_empty() {
            self.usage.calls = self.usage.calls.saturating_add(1);
            *self.call_counts.entry(call.to_owned()).or_default() += 1;
        }
        Ok(())
    }

    fn apply_step_ended(&mut self, id: &str, outcome: &StepEnd, milliseconds: u64) -> Result<(), RunError> {
        let result_from = self.step(id).map(|step| self.outcome_sources(step, outcome)).unwrap_or_default();
        let step = self.step_mut(id)?;
        let needs_start = matches!(outcome, StepEnd::Done { .. } | StepEnd::Unknown { .. });
        match step.phase {
            StepPhase::Ended(_) => return Err(RunError::Invalid("the step has already ended")),
            StepPhase::Waiting if needs_start => return Err(RunError::Invalid("the step was not started")),
            StepPhase::Waiting | StepPhase::Started => {}
        }
        step.phase = StepPhase::Ended(outcome.clone());
        step.milliseconds = milliseconds;
        step.result_from = result_from.clone();
        self.data_sources.extend(&result_from);
        Ok(())
    }

    fn apply_verified(&mut self, id: &str, verification: &Verification) -> Result<(), RunError> {
        let judge = ModelTask::Judge { step: id.to_owned() };
        let is_judged = self.reply(&judge).is_some();
        let step = self.step_mut(id)?;
        if !matches!(step.phase, StepPhase::Ended(StepEnd::Done { .. })) {
            return Err(RunError::Invalid("the step has no result to verify"));
        }
        step.verification = Some(verification.clone());
        if is_judged {
            step.judged = true;
            self.forget_replies(|task| *task == judge);
        }
        Ok(())
    }

    fn apply_step_repaired(
        &mut self,
        id: &str,
        arguments: &Map<String, Value>,
        notes: &[String],
    ) -> Result<(), RunError> {
        if !self.step_mut(id)?.needs_repair() {
            return Err(RunError::Invalid("the step needs no new arguments"));
        }
        let written_from = self.step(id).map(|step| self.repair_sources(step)).unwrap_or_default();
        let attempt = self.next_attempt(id);
        self.forget_replies(|task| *task == ModelTask::Repair { step: id.to_owned() });
        let step = self.step_mut(id)?;
        step.written_from = written_from;
        step.result_from = DataSources::default();
        step.step.arguments = arguments.clone();
        step.target = String::new();
        step.attempt = attempt;
        // The old notes are about the old arguments.
        step.tool.notes = notes.to_vec();
        step.phase = StepPhase::Waiting;
        // The approval was for the old arguments.
        step.approval = ApprovalState::None;
        step.repair = RepairState::Done;
        step.verification = None;
        step.judged = false;
        Ok(())
    }

    /// Lets the step continue. The journal holds the user's answer, and the call of the step returns it.
    fn apply_step_resolved(&mut self, id: &str, resolution: Resolution) -> Result<(), RunError> {
        let step = self.step_mut(id)?;
        if !step.phase.is_unknown() {
            return Err(RunError::Invalid("the outcome of the step is known"));
        }
        step.was_interrupted = false;
        step.phase = match resolution {
            Resolution::Done => StepPhase::Started,
            Resolution::NotDone => StepPhase::Waiting,
        };
        Ok(())
    }

    fn apply_approval_decided(
        &mut self,
        id: &str,
        allowed: bool,
        always: bool,
        by: &str,
    ) -> Result<(), RunError> {
        let step = self.step_mut(id)?;
        let ApprovalState::Requested { call, tool, .. } = step.approval.clone() else {
            return Err(RunError::Invalid("no approval was requested"));
        };
        step.approval = if allowed {
            ApprovalState::Allowed { call }
        } else {
            ApprovalState::Denied { by: by.to_owned() }
        };
        if allowed && always {
            self.always_allowed.insert(tool);
        }
        Ok(())
    }

    fn next_attempt(&mut self, id: &str) -> usize {
        let attempts = self.attempts.entry(id.to_owned()).or_default();
        *attempts = attempts.saturating_add(1);
        *attempts
    }

    fn forget_replies(&mut self, is_processed: impl Fn(&ModelTask) -> bool) {
        self.replies.retain(|(task, _)| !is_processed(task));
    }

    fn step_mut(&mut self, id: &str) -> Result<&mut StepRun, RunError> {
        let step = self.steps.iter_mut().find(|step| step.step.id == id);
        step.ok_or_else(|| RunError::UnknownStep(id.to_owned()))
    }
}

/// The text and tool calls of a reply, to show them to the model again.
fn reply_text(reply: &ModelReply) -> String {
    let calls = reply.calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
    let parts: Vec<String> =
        [reply.text.clone()].into_iter().filter(|text| !text.is_empty()).chain(calls).collect();
    parts.join("\n")
}
