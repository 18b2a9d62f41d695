//! Starts the tasks that may start, and completes at once those that need no waiting.

use toolyard_core::SourceId;

use super::{
    approval::store::{PendingDecisions, poll_decisions},
    model::model_call::call_model,
    outcome::TaskOutcome,
    run_driver::{Draining, RunDriver},
    steps::{
        call::verify,
        prepare::{RecordedCall, StepInputs, prepare},
    },
};
use crate::{
    AgentError, ApprovalState, ModelTask, RunEnd, RunEvent, RunLimit, StepEnd, StepRun, Task,
    run::schedule::{CallAccess, startable_steps},
};

impl RunDriver<'_> {
    /// Proceeds until something must be awaited.
    pub(super) fn advance(&mut self) -> Result<(), AgentError> {
        while self.run.end().is_none() {
            if let Some(draining) = self.draining {
                return match draining {
                    Draining::LimitReached(limit) if self.in_flight.is_idle_but_for_approvals() => {
                        let end = self.limit_reached(limit);
                        self.end(end)
                    }
                    _ => Ok(()),
                };
            }
            let tasks = self.run.tasks();
            let mut completed = false;
            for task in &tasks {
                completed |= self.complete(task)?;
            }
            if completed {
                continue;
            }
            self.start_all(&tasks)?;
            if self.draining.is_none() {
                return if self.is_stuck() { self.suspend() } else { Ok(()) };
            }
        }
        Ok(())
    }

    /// Whether nothing is in flight: no task, no approval, no check for decisions made elsewhere.
    fn is_stuck(&self) -> bool {
        self.in_flight.is_idle_but_for_approvals()
            && self.in_flight.approvals.is_empty()
            && !self.in_flight.polling_approvals
    }

    /// Suspends the run, after a last check for decisions made elsewhere.
    fn suspend(&mut self) -> Result<(), AgentError> {
        if self.in_flight.polled_without_result {
            return self.end(RunEnd::Suspended { waiting_for: self.run.waiting_for() });
        }
        self.in_flight.polling_approvals = true;
        let (context, pending) = (self.context.clone(), PendingDecisions::of(&self.run));
        self.queue(async move {
            TaskOutcome::DecisionsPolled { outcome: poll_decisions(&context, &pending).await }
        });
        Ok(())
    }

    /// Completes a task that needs no waiting. Returns whether the run changed.
    fn complete(&mut self, task: &Task) -> Result<bool, AgentError> {
        match task {
            Task::Plan { .. } => self.read_plan_reply(task),
            Task::Reason(step) | Task::Call(step) => self.read_reasoning_reply(step),
            Task::RepairStep(step) => self.read_repair_reply(step),
            Task::Judge(step) => self.read_judgement_reply(step),
            Task::Answer => self.read_answer_reply(),
            Task::Review => self.end_after_review(),
            Task::Deny(step) => self.deny(step).map(|()| true),
            Task::Skip { step, because } => {
                let outcome = StepEnd::Skipped { because: because.clone() };
                self.end_step(step, outcome).map(|()| true)
            }
            Task::Simulate(step) => self.end_step(step, StepEnd::Simulated).map(|()| true),
            Task::Fail => self.fail().map(|()| true),
            Task::End(end) => self.end(end.clone()).map(|()| true),
            Task::Verify(_) | Task::RequestApproval(_) => Ok(false),
        }
    }

    pub(super) fn end_step(&mut self, step: &str, outcome: StepEnd) -> Result<(), AgentError> {
        self.record(RunEvent::StepEnded { step: step.to_owned(), outcome, milliseconds: 0 })
    }

    fn deny(&mut self, step: &str) -> Result<(), AgentError> {
        let by = match self.run.step(step).map(|step| &step.approval) {
            Some(ApprovalState::Denied { by }) => by.clone(),
            _ => "an approver".to_owned(),
        };
        self.end_step(step, StepEnd::Denied { by })
    }

    /// Starts every task that is not in flight and may start.
    fn start_all(&mut self, tasks: &[Task]) -> Result<(), AgentError> {
        for task in tasks {
            match task {
                Task::Call(_) => {}
                Task::Verify(step) => self.start_verification(step),
                Task::RequestApproval(step) => self.start_approval(step),
                task => self.start_model_call(task)?,
            }
        }
        let ready = tasks.iter().filter_map(|task| match task {
            Task::Call(step) if !self.is_in_flight(step) => self.run.step(step),
            _ => None,
        });
        let ready: Vec<StepRun> = ready.cloned().collect();
        let accesses: Vec<CallAccess<'_>> = ready.iter().map(call_access).collect();
        let in_flight = self.in_flight.calls.iter().map(|(step, (source, writes))| CallAccess {
            step,
            source: source.as_deref(),
            writes: *writes,
        });
        let startable = startable_steps(&accesses, &in_flight.collect::<Vec<_>>());
        for step in ready.iter().filter(|step| startable.contains(&step.step.id.as_str())) {
            let CallAccess { source, writes, .. } = call_access(step);
            let access = (source.map(str::to_owned), writes);
            self.in_flight.calls.insert(step.step.id.clone(), access);
            self.start_preparation(step);
        }
        Ok(())
    }

    fn is_in_flight(&self, step: &str) -> bool {
        let reasoning = ModelTask::Reason { step: step.to_owned() };
        self.in_flight.calls.contains_key(step)
            || self.in_flight.models.contains(&reasoning)
            || self.in_flight.approvals.contains(step)
    }

    fn start_preparation(&mut self, step: &StepRun) {
        let (context, inputs) = (self.context.clone(), StepInputs::new(&self.run, step));
        let step = step.step.id.clone();
        self.queue(async move { TaskOutcome::Prepared { step, outcome: prepare(context, inputs).await } });
    }

    fn start_verification(&mut self, id: &str) {
        if self.in_flight.verifications.contains(id) {
            return;
        }
        if let Some(step) = self.run.step(id).cloned() {
            self.in_flight.verifications.insert(id.to_owned());
            let (context, earlier, id) = (self.context.clone(), self.earlier_results(&step), id.to_owned());
            self.queue(async move {
                TaskOutcome::Verified { step: id, verification: verify(context, step, earlier).await }
            });
        }
    }

    fn start_approval(&mut self, id: &str) {
        if self.in_flight.approvals.contains(id) || self.in_flight.left_undecided.contains(id) {
            return;
        }
        if let Some(step) = self.run.step(id).cloned() {
            self.in_flight.approvals.insert(id.to_owned());
            self.start_preparation(&step);
        }
    }

    fn start_model_call(&mut self, task: &Task) -> Result<(), AgentError> {
        let Some(model_task) = task.model_task().filter(|task| !self.in_flight.models.contains(task)) else {
            return Ok(());
        };
        if let Some(limit) = self.limit_on_task(task) {
            self.drain(limit);
            return Ok(());
        }
        if let Task::Reason(id) = task
            && let Some(step) = self.run.step(id).cloned()
        {
            self.record_start(&step, RecordedCall::default())?;
        }
        self.queue_model_call(model_task);
        Ok(())
    }

    pub(super) fn queue_model_call(&mut self, task: ModelTask) {
        self.in_flight.models.insert(task.clone());
        let (context, run) = (self.context.clone(), self.run.clone());
        self.queue(async move {
            let outcome = Box::new(call_model(context, run, task.clone()).await);
            TaskOutcome::ModelReplied { task, outcome }
        });
    }

    /// Starts nothing new; the run ends once nothing is in flight.
    pub(super) fn drain(&mut self, limit: RunLimit) {
        self.draining.get_or_insert(Draining::LimitReached(limit));
    }

    /// The same, because a quota is used up: whatever a model would try next would be refused too.
    pub(super) fn drain_for_quota(&mut self, message: String) {
        self.exceeded_quota.get_or_insert(message);
        self.drain(RunLimit::Quota);
    }
}

fn call_access(step: &StepRun) -> CallAccess<'_> {
    let source = step.tool.source.as_ref().map(SourceId::as_str);
    CallAccess { step: &step.step.id, source, writes: !step.tool.read_only }
}
