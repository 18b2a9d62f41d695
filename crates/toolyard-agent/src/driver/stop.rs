//! Ends a run in the middle. What was under way and must not be repeated is left to a person.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, timeout_at};
use toolyard_core::{ErrorKind, RawJson, StepAnswer, StepOutcome, StepRecord, StepState, ToolError};

use super::{
    call::preview,
    happened::{Happened, ended_by},
    patient::{is_hiccup, patiently},
    session::{Context, Draining, Session},
};
use crate::{AgentError, Phase, RunEnd, RunEvent, StepEnd, StepRun};

/// So long calls under way may still end by themselves: an outcome that is known is better than none.
const GRACE: Duration = Duration::from_millis(200);

impl Session<'_> {
    /// Ends the run now.
    pub(super) async fn stop(&mut self, end: RunEnd) -> Result<RunEnd, AgentError> {
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

    /// Leaves the run as it is.
    pub(super) async fn leave(&mut self) {
        self.draining = Some(Draining::Stop);
        if let Err(error) = self.let_calls_end().await {
            tracing::debug!(run = %self.context.lease.run, %error, "what ended last could not be taken");
        }
    }

    async fn let_calls_end(&mut self) -> Result<(), AgentError> {
        let until = Instant::now() + GRACE;
        loop {
            let happened = match self.arrived.pop_front() {
                Some(happened) => happened,
                None if self.under_way.calls.is_empty() => {
                    // Whatever has ended by now is heard still: it may have cost something.
                    match self.tasks.next().now_or_never().flatten() {
                        Some(happened) => happened,
                        None => return Ok(()),
                    }
                }
                None => match timeout_at(until, self.tasks.next()).await {
                    Ok(Some(happened)) => happened,
                    Ok(None) | Err(_) => return Ok(()),
                },
            };
            match happened {
                ended @ (Happened::Called { .. } | Happened::Thought { .. }) => self.take(ended)?,
                Happened::Prepared { step, .. } => drop(self.under_way.calls.remove(&step)),
                _ => {}
            }
        }
    }
}

/// How a step ends that was left in the middle: the journal knows whether it ended, or may have changed something.
async fn left(context: &Context<'_>, step: &StepRun) -> Result<StepEnd, AgentError> {
    let (log, lease, name) = (&context.parts.log, context.lease, step.journal_name());
    let given_up = || ToolError::new(ErrorKind::Lost, "it was given up before it answered");
    let record = || patiently(context.patience(), is_hiccup, || log.step(&lease.run, &name));
    let known = record().await?;
    if let Some(end) = known.as_ref().and_then(ended) {
        return Ok(end);
    }
    if !known.is_some_and(|known| known.state == StepState::Started && !known.repeatable) {
        return Ok(ended_by(&given_up()));
    }
    let error = given_up().outcome_unknown();
    let outcome = RawJson::from_serialize(&StepAnswer::of(&Err(error.clone())));
    let outcome = StepOutcome {
        state: StepState::Unknown,
        outcome: outcome.unwrap_or_else(|_| RawJson::empty_object()),
    };
    let finished = patiently(context.patience(), is_hiccup, || log.finish(lease, &name, &outcome)).await;
    match finished {
        Ok(()) => Ok(ended_by(&error)),
        // What the call wrote itself may have come between.
        Err(refused) => record().await?.as_ref().and_then(ended).ok_or_else(|| refused.into()),
    }
}

/// How a step ended, if the journal knows.
fn ended(known: &StepRecord) -> Option<StepEnd> {
    let answer = || known.outcome.as_ref()?.read::<StepAnswer>().ok();
    match known.state {
        StepState::Done | StepState::Failed => Some(match answer()?.into_outcome() {
            Ok(output) => {
                let text = output.to_text();
                let (preview, size) = (preview(&text), text.chars().count());
                StepEnd::Done { source: output.meta.source, preview, size }
            }
            Err(error) => ended_by(&error),
        }),
        StepState::Unknown => {
            let message = "it was given up before it answered, and nobody knows how it ended".to_owned();
            Some(StepEnd::Unknown { message })
        }
        StepState::Started | StepState::NotDone => None,
    }
}
