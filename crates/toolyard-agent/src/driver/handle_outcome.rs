//! Handles the outcomes of tasks.

use tokio::time::Instant;
use toolyard_core::{ApprovalOutcome, ErrorKind, ResultShape, ToolError};
use toolyard_hub::CallOptions;

use super::{
    approval::store::settle,
    model::{model_call::ModelOutcome, model_io::data_owner},
    outcome::TaskOutcome,
    run_driver::{Draining, RunDriver},
    steps::{
        argument_view::ArgumentsTooLarge,
        call::{EarlierResults, MAX_RETAINED_VALUE_CHARS, StepCall, StepCallOutcome, execute},
        prepare::{CallDecision, PrepareError, PreparedCall, RecordedCall, decide_call},
    },
};
use crate::{AgentError, ApprovalState, ModelTask, RunEvent, RunUpdate, StepEnd, StepPhase, StepRun, Task};

impl RunDriver<'_> {
    pub(super) fn handle(&mut self, outcome: TaskOutcome) -> Result<(), AgentError> {
        match outcome {
            TaskOutcome::Prepared { step, outcome } => {
                self.in_flight.approvals.remove(&step);
                match outcome {
                    Ok(prepared) => self.handle_prepared(&step, prepared),
                    Err(PrepareError { message, kind }) => {
                        self.in_flight.calls.remove(&step);
                        self.end_step(&step, StepEnd::Failed { message, hint: None, kind: Some(kind) })
                    }
                }
            }
            TaskOutcome::Called { step, outcome, milliseconds } => {
                self.in_flight.call_starts.remove(&step);
                self.in_flight.calls.remove(&step);
                self.handle_called(&step, *outcome, milliseconds)
            }
            TaskOutcome::Verified { step, verification } => {
                self.in_flight.verifications.remove(&step);
                self.record(RunEvent::Verified { step, verification })
            }
            TaskOutcome::ModelReplied { task, outcome } => self.handle_model_reply(task, *outcome),
            TaskOutcome::ApprovalRequested { step, outcome } => self.handle_approval_request(step, *outcome?),
            TaskOutcome::ApprovalDecided { step, outcome } => self.handle_approval_decision(step, outcome?),
            TaskOutcome::HousekeepingDone => Ok(()),
            TaskOutcome::DecisionsPolled { outcome } => {
                let events = outcome?;
                self.in_flight.polling_approvals = false;
                // After a decision, another one may arrive before the run is suspended.
                self.in_flight.polled_without_result = events.is_empty();
                events.into_iter().try_for_each(|event| self.record(event))
            }
        }
    }

    fn handle_model_reply(&mut self, task: ModelTask, outcome: ModelOutcome) -> Result<(), AgentError> {
        let ModelOutcome { reply, sent, streamed, milliseconds, quota_exceeded } = outcome;
        let sent = sent.and_then(|sent| serde_json::to_value(sent).ok()).map(Box::new);
        self.streamed.push_str(&streamed);
        self.in_flight.models.remove(&task);
        if let Some(exceeded) = quota_exceeded {
            if exceeded.store_error.is_some() {
                // Nothing is used up: another driver goes on once the store works.
                tracing::warn!(run = %self.context.lease.run, error = %exceeded, "released the run: a quota cannot be checked");
                self.draining.get_or_insert(Draining::Release);
                return Ok(());
            }
            self.drain_for_quota(exceeded.to_string());
            return Ok(());
        }
        match reply {
            Ok(mut reply) => {
                reply.usage = self.context.parts.with_cost(reply.usage);
                self.record(RunEvent::ModelReplied { task, reply, milliseconds, sent })?;
            }
            Err(error) => {
                let usage = self.context.parts.with_cost(error.usage());
                let (message, hint, kind) = (error.to_string(), error.hint, Some(error.kind));
                self.record(RunEvent::ModelFailed { task, message, hint, kind, usage, sent })?;
            }
        }
        self.context.watcher.on_update(&RunUpdate::UsageChanged { usage: self.run.usage().model });
        Ok(())
    }

    /// Decides on a prepared call by the present rules and the state of the run.
    fn handle_prepared(&mut self, id: &str, prepared: Box<PreparedCall>) -> Result<(), AgentError> {
        let Some(step) = self.run.step(id).cloned() else { return Ok(()) };
        let decision = decide_call(&self.run, &step, &prepared);
        let is_scheduled = self.in_flight.calls.contains_key(id);
        if decision != CallDecision::Start || self.draining.is_some() {
            self.in_flight.calls.remove(id);
        }
        if self.draining.is_some() {
            return Ok(());
        }
        match decision {
            CallDecision::Start if is_scheduled => self.start_call(step, prepared),
            // An approval was requested, and the rules allow the call now: it is scheduled like others.
            CallDecision::Start => {
                let (requested, by) = (step.approval, "rules".to_owned());
                let step = step.step.id;
                self.record(RunEvent::ApprovalDecided { step, allowed: true, always: false, by })?;
                // No approver shall be asked about it any more.
                if let ApprovalState::Requested { id, .. } = requested {
                    let context = self.context.clone();
                    self.queue(async move {
                        settle(&context, id, ApprovalOutcome::Approved, "rules").await;
                        TaskOutcome::HousekeepingDone
                    });
                }
                Ok(())
            }
            CallDecision::RequestApproval(pending) => {
                let view = match prepared.view.clone() {
                    Some(Err(reason)) if self.context.watcher.approves_everything() => reason.placeholder(),
                    Some(Ok(view)) => view,
                    view => return self.refuse_unshowable(id, view.and_then(Result::err)),
                };
                self.request_approval(step, &prepared, &view, pending);
                Ok(())
            }
            CallDecision::Deny => {
                self.audit_denied(&prepared);
                self.end_step(id, StepEnd::Denied { by: "rules".to_owned() })
            }
            CallDecision::Simulate => {
                self.record_start(&step, RecordedCall::simulated(&prepared))?;
                self.end_step(id, StepEnd::Simulated)
            }
        }
    }

    /// Ends a step that needs an approval and whose arguments cannot be shown to an approver.
    fn refuse_unshowable(&mut self, id: &str, reason: Option<ArgumentsTooLarge>) -> Result<(), AgentError> {
        let message = reason.map_or_else(
            || "the call needs an approval, but its arguments were not prepared for an approver".to_owned(),
            |reason| reason.to_string(),
        );
        let hint = Some("pass less data in one call".to_owned());
        self.end_step(id, StepEnd::Failed { message, hint, kind: Some(ErrorKind::Refused) })
    }

    /// Records the start of a step, unless it was started before.
    pub(super) fn record_start(&mut self, step: &StepRun, call: RecordedCall) -> Result<(), AgentError> {
        if step.phase != StepPhase::Waiting {
            return Ok(());
        }
        let step = step.step.id.clone();
        let RecordedCall { arguments_preview, target, may_change, call, notes } = call;
        self.record(RunEvent::StepStarted { step, arguments_preview, target, may_change, call, notes })
    }

    /// Records a call in the audit log that the rules deny, because it does not reach the hub.
    fn audit_denied(&self, prepared: &PreparedCall) {
        let options = CallOptions::default().on_behalf_of(self.caller_name());
        let error = ToolError::new(ErrorKind::Refused, "the operator's rules deny calls of this tool");
        let error = match &prepared.tool.source {
            Some(source) => error.on_source(source),
            None => error,
        };
        let _ = self.context.parts.hub.refuse(&prepared.request, &options, error);
    }

    /// The name of the run's caller, for the audit log.
    fn caller_name(&self) -> String {
        match self.run.request() {
            Some(request) if !request.caller.is_empty() => request.caller.to_string(),
            _ => self.context.parts.config.name.clone(),
        }
    }

    fn start_call(&mut self, step: StepRun, prepared: Box<PreparedCall>) -> Result<(), AgentError> {
        if step.phase == StepPhase::Waiting {
            if let Some(limit) = self.limit_on_call(&prepared.call_hash) {
                self.in_flight.calls.remove(&step.step.id);
                self.drain(limit);
                return Ok(());
            }
            self.record_start(&step, RecordedCall::of(&prepared))?;
        }
        let caller_name = self.caller_name();
        let request = self.run.request().cloned().unwrap_or_default();
        let owner = request.owner_text().to_owned();
        let identity = request.identity.clone();
        let past_request = match step.step.written_description() {
            Some(description) => description.to_owned(),
            None => request.question,
        };
        let earlier = self.earlier_results(&step);
        let (context, id) = (self.context.clone(), step.step.id.clone());
        let call = StepCall { step, prepared, caller_name, past_request, owner, identity, earlier };
        let started = Instant::now();
        self.in_flight.call_starts.insert(id.clone(), started);
        self.queue(async move {
            let outcome = Box::new(execute(context, call).await);
            let milliseconds = elapsed_millis(started);
            TaskOutcome::Called { step: id, outcome, milliseconds }
        });
        Ok(())
    }

    /// Results of other steps that made the same call, to compare with.
    pub(super) fn earlier_results(&self, step: &StepRun) -> EarlierResults {
        let is_same = |other: &&StepRun| {
            other.step.id != step.step.id
                && other.step.tool_type == step.step.tool_type
                && other.step.arguments == step.step.arguments
        };
        let preview = |other: &StepRun| match &other.phase {
            StepPhase::Ended(StepEnd::Done { preview, .. }) => Some((other.step.id.clone(), preview.clone())),
            _ => None,
        };
        self.run.steps().iter().filter(is_same).filter_map(preview).collect()
    }

    fn handle_called(
        &mut self,
        id: &str,
        outcome: StepCallOutcome,
        milliseconds: u64,
    ) -> Result<(), AgentError> {
        let step = id.to_owned();
        match outcome {
            StepCallOutcome::Done { source, preview, size, shape, example, verification } => {
                let learned_shape =
                    shape.zip(source.clone()).zip(self.run.step(id)).map(|((shape, source), step)| {
                        ResultShape {
                            owner: data_owner(&self.run),
                            tool: step.step.tool_type.clone(),
                            source,
                            shape,
                        }
                    });
                let outcome = StepEnd::Done { source, preview, size, reasoned: false };
                self.record(RunEvent::StepEnded { step: step.clone(), outcome, milliseconds })?;
                self.record(RunEvent::Verified { step, verification })?;
                if let Some((shapes, shape)) = self.context.parts.result_shapes.as_ref().zip(learned_shape) {
                    self.queue(async move {
                        shapes.record(&shape).await;
                        TaskOutcome::HousekeepingDone
                    });
                }
                if let Some((examples, example)) = self.context.parts.argument_examples.as_ref().zip(example)
                {
                    self.queue(async move {
                        examples.record_example(&example).await;
                        TaskOutcome::HousekeepingDone
                    });
                }
                self.evict_unneeded_values(id);
                Ok(())
            }
            StepCallOutcome::NoTool(_) if self.draining.is_none() => self.reason_instead(step),
            StepCallOutcome::Failed(error) if self.draining.is_none() && self.may_reason_out(id, &error) => {
                self.reason_instead(step)
            }
            StepCallOutcome::NoTool(error) | StepCallOutcome::Failed(error) => {
                if error.kind() == ErrorKind::QuotaExceeded {
                    self.drain_for_quota(error.message().to_owned());
                }
                self.record(RunEvent::StepEnded { step, outcome: end_for_error(&error), milliseconds })
            }
        }
    }

    /// Whether a model may produce the result of a step whose tool failed: the tool only reads and could not be reached,
    /// no other plan will follow, and there is a result to reason from. A tool that answered with an error has said
    /// something, which a model must not contradict.
    fn may_reason_out(&self, id: &str, error: &ToolError) -> bool {
        let is_unreachable = matches!(
            error.kind(),
            ErrorKind::Unavailable | ErrorKind::CircuitOpen | ErrorKind::Timeout | ErrorKind::ResponseLost
        );
        let replans = self.run.request().map_or(0, |request| request.limits.replans);
        is_unreachable
            && self.run.round() >= replans
            && self.run.step(id).is_some_and(|step| step.tool.read_only)
            && self.run.steps().iter().any(StepRun::has_value)
    }

    /// Lets a model produce the result of a step for which there is no tool, or whose tool cannot be reached.
    fn reason_instead(&mut self, step: String) -> Result<(), AgentError> {
        let task = ModelTask::Reason { step: step.clone() };
        match self.limit_on_task(&Task::Reason(step)) {
            Some(limit) => self.drain(limit),
            None => self.queue_model_call(task),
        }
        Ok(())
    }

    /// Drops large values of this step's dependencies that no other step still needs; the journal has them.
    fn evict_unneeded_values(&self, id: &str) {
        let Some(step) = self.run.step(id) else { return };
        for other in step.step.dependencies.iter().filter_map(|name| self.run.step(name)) {
            let is_large = other.size() > MAX_RETAINED_VALUE_CHARS;
            let depends_on_it = |later: &&StepRun| later.step.dependencies.contains(&other.step.id);
            let is_unused = self.run.steps().iter().filter(depends_on_it).all(|later| later.phase.is_ended());
            if is_large && is_unused && !other.is_reasoning() {
                self.context.values.evict(&other.journal_name());
            }
        }
    }
}

/// The time since then, in whole milliseconds.
pub(super) fn elapsed_millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// How a step ends whose call returned this error.
pub(super) fn end_for_error(error: &ToolError) -> StepEnd {
    match error.kind() {
        ErrorKind::OutcomeUnknown => StepEnd::Unknown { message: error.to_string() },
        kind => StepEnd::Failed {
            // The person who reads the answer must learn where to sign in.
            message: match error.sign_in() {
                Some(link) => format!("{error}; {}", link.instruction()),
                None => error.to_string(),
            },
            hint: error.hint().map(str::to_owned),
            kind: Some(kind),
        },
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::SignInLink;

    use super::*;

    #[test]
    fn a_step_that_needs_a_sign_in_tells_the_person_where() {
        let link = SignInLink::new("notes", "e1", "https://tools.example/sign-in/t1cket".to_owned());
        let error = ToolError::new(ErrorKind::SignInRequired, "server `notes` requires authentication");
        let StepEnd::Failed { message, kind, .. } = end_for_error(&error.with_sign_in(link)) else {
            panic!("the step did not fail")
        };
        assert_eq!(kind, Some(ErrorKind::SignInRequired));
        assert!(message.contains("open https://tools.example/sign-in/t1cket in your browser"), "{message}");
    }
}
