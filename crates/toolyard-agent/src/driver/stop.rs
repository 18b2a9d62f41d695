//! Ends a run in the middle. What was under way and must not be repeated is left to a person.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};
use toolyard_core::{ErrorKind, RawJson, StepAnswer, StepOutcome, StepState, ToolError};

use super::{
    happened::{Happened, ended_by},
    session::{Context, Draining, Session},
};
use crate::{AgentError, Phase, RunEnd, RunEvent, StepEnd, StepRun};

/// So long calls under way may still end by themselves: an outcome that is known is better than none.
const GRACE: Duration = Duration::from_millis(200);

impl Session<'_> {
    /// Ends the run now.
    pub(super) async fn stop(mut self, end: RunEnd) -> Result<RunEnd, AgentError> {
        self.draining = Some(Draining::Stop);
        self.let_calls_end().await?;
        // Dropped here, nothing goes on any more.
        self.tasks.clear();
        let under_way: Vec<StepRun> =
            self.run.steps().iter().filter(|step| step.phase == Phase::Started).cloned().collect();
        for step in under_way {
            let outcome = left(&self.context, &step).await?;
            let step = step.step.id;
            self.note(RunEvent::StepEnded { step, outcome, milliseconds: 0 })?;
        }
        if self.run.end().is_none() {
            self.end(end)?;
        }
        self.flush().await?;
        self.close_questions().await;
        Ok(self.run.end().cloned().unwrap_or(RunEnd::Cancelled))
    }

    async fn let_calls_end(&mut self) -> Result<(), AgentError> {
        let until = Instant::now() + GRACE;
        while !self.under_way.calls.is_empty() {
            let happened = match self.arrived.pop_front() {
                Some(happened) => happened,
                None => match timeout_at(until, self.tasks.next()).await {
                    Ok(Some(happened)) => happened,
                    Ok(None) | Err(_) => return Ok(()),
                },
            };
            match happened {
                called @ Happened::Called { .. } => self.take(called)?,
                Happened::Prepared { step, .. } => drop(self.under_way.calls.remove(&step)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// How a step ends that was left in the middle: the journal knows whether something may have been changed.
async fn left(context: &Context<'_>, step: &StepRun) -> Result<StepEnd, AgentError> {
    let (log, lease, name) = (&context.parts.log, context.lease, step.journal_name());
    let given_up = || ToolError::new(ErrorKind::Lost, "it was given up before it answered");
    let known = log.step(&lease.run, &name).await?;
    let unsettled =
        known.as_ref().is_some_and(|known| known.state == StepState::Started && !known.repeatable);
    if !unsettled {
        return Ok(ended_by(&given_up()));
    }
    let error = given_up().outcome_unknown();
    let outcome = RawJson::from_serialize(&StepAnswer::of(&Err(error.clone())));
    let outcome = outcome.unwrap_or_else(|_| RawJson::empty_object());
    log.finish(lease, &name, &StepOutcome { state: StepState::Unknown, outcome }).await?;
    Ok(ended_by(&error))
}
