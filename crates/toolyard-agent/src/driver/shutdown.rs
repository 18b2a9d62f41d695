//! Stops a run early. Calls that may have taken effect and must not be repeated are left for a user to resolve.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};
use toolyard_core::{ErrorKind, FinishedStep, RawJson, StepRecord, StepResult, StepState, ToolError};

use super::{
    context::Context,
    handle_outcome::{elapsed_millis, end_for_error},
    outcome::TaskOutcome,
    retry::{is_transient, retry},
    run_driver::{Draining, RunDriver},
    steps::preview,
};
use crate::{AgentError, RunEnd, RunEvent, StepEnd, StepPhase, StepRun};

/// Calls in flight may still end by themselves for this long, because a known outcome is better than an unknown one.
const CALL_GRACE: Duration = Duration::from_millis(200);

impl RunDriver<'_> {
    /// Waits briefly for the calls in flight, then ends all started steps and the run.
    pub(super) async fn stop(&mut self, end: RunEnd) -> Result<RunEnd, AgentError> {
        self.draining = Some(Draining::Stop);
        self.await_calls().await?;
        self.tasks.clear();
        let started: Vec<StepRun> =
            self.run.steps().iter().filter(|step| step.phase == StepPhase::Started).cloned().collect();
        for step in started {
            let outcome = end_of_abandoned_step(&self.context, &step).await?;
            let milliseconds =
                self.in_flight.call_starts.get(&step.step.id).copied().map_or(0, elapsed_millis);
            self.record(RunEvent::StepEnded { step: step.step.id, outcome, milliseconds })?;
        }
        if self.run.end().is_none() {
            self.end(end)?;
        }
        self.flush().await?;
        self.close_requests().await;
        Ok(self.run.end().cloned().unwrap_or(RunEnd::Cancelled))
    }

    /// Waits briefly for the calls in flight and leaves the run as it is.
    pub(super) async fn abandon(&mut self) {
        self.draining = Some(Draining::Stop);
        if let Err(error) = self.await_calls().await {
            tracing::debug!(run = %self.context.lease.run, %error, "failed to handle the last outcomes of an abandoned run");
        }
    }

    /// Waits for the calls in flight, within [`CALL_GRACE`].
    async fn await_calls(&mut self) -> Result<(), AgentError> {
        let deadline = Instant::now() + CALL_GRACE;
        loop {
            let outcome = match self.ready_outcomes.pop_front() {
                Some(outcome) => outcome,
                // Outcomes that are already available are still handled: model replies were paid for.
                None if self.in_flight.calls.is_empty() => match self.take_ready_outcome() {
                    Some(outcome) => outcome,
                    None => return Ok(()),
                },
                None => match timeout_at(deadline, self.tasks.next()).await {
                    Ok(Some(outcome)) => outcome,
                    Ok(None) | Err(_) => return Ok(()),
                },
            };
            match outcome {
                ended @ (TaskOutcome::Called { .. } | TaskOutcome::ModelReplied { .. }) => {
                    self.handle(ended)?;
                }
                TaskOutcome::Prepared { step, .. } => drop(self.in_flight.calls.remove(&step)),
                _ => {}
            }
        }
    }
}

/// How a started step ends whose call is abandoned: as the journal says, else failed, or unknown if the call may have
/// taken effect and is not safe to repeat.
async fn end_of_abandoned_step(context: &Context<'_>, step: &StepRun) -> Result<StepEnd, AgentError> {
    let (log, lease, name) = (&context.parts.log, context.lease, step.journal_name());
    let abandoned_error =
        || ToolError::new(ErrorKind::ResponseLost, "the call was abandoned before it ended");
    let read_record = || retry(context.retry_window(), is_transient, || log.step(&lease.run, &name));
    let record = read_record().await?;
    if let Some(end) = record.as_ref().and_then(recorded_end) {
        return Ok(end);
    }
    if !record.is_some_and(|record| record.state == StepState::Started && !record.repeatable) {
        return Ok(end_for_error(&abandoned_error()));
    }
    let error = abandoned_error().outcome_unknown();
    let result = RawJson::from_serialize(&StepResult::of(&Err(error.clone())));
    let outcome = FinishedStep {
        state: StepState::Unknown,
        result: result.unwrap_or_else(|_| RawJson::empty_object()),
    };
    let finished = retry(context.retry_window(), is_transient, || log.finish(lease, &name, &outcome)).await;
    match finished {
        Ok(()) => Ok(end_for_error(&error)),
        // The call itself may have journaled its outcome in between.
        Err(error) => read_record().await?.as_ref().and_then(recorded_end).ok_or_else(|| error.into()),
    }
}

/// How a step ended according to the journal, if it did.
fn recorded_end(record: &StepRecord) -> Option<StepEnd> {
    let result = || record.outcome.as_ref()?.read::<StepResult>().ok();
    match record.state {
        StepState::Done | StepState::Failed => Some(match result()?.into_tool_result() {
            Ok(output) => {
                let text = output.to_text();
                let (preview, size) = (preview(&text), text.chars().count());
                StepEnd::Done { source: output.meta.source, preview, size, reasoned: false }
            }
            Err(error) => end_for_error(&error),
        }),
        StepState::Unknown => {
            let message = "the call was abandoned before it ended; its outcome is unknown".to_owned();
            Some(StepEnd::Unknown { message })
        }
        StepState::Started | StepState::NotDone => None,
    }
}
