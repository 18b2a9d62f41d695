//! Runs from their log alone, without tools or models: where one stands, what happened in it, and what a person may do
//! about one that nobody works on.

use std::{collections::BTreeSet, time::Duration};

use toolyard_core::{Answer, Approvals, LoggedEvent, QuestionKind, RawJson, RunId, RunLog, RunState};

use crate::{AgentError, Run, RunEnd, RunEvent, RunNews, driver::RUN_KIND};

/// How long a run that is cancelled belongs to whoever cancels it.
const CANCELLING: Duration = Duration::from_secs(30);

/// A run, and what its driver must know of its log.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) run: Run,
    /// The place of the next transition.
    pub(crate) next: i64,
    /// How long it was worked on.
    pub(crate) worked: Duration,
}

/// Where a run stands, and how it came there.
pub async fn load(log: &dyn RunLog, run: &RunId) -> Result<(Run, Vec<LoggedEvent>), AgentError> {
    let record = log.run(run).await?;
    if record.kind != RUN_KIND {
        return Err(AgentError::OtherKind { run: run.clone(), kind: record.kind });
    }
    let events = log.events(run, 0).await?;
    let mut state = Run::new();
    for logged in &events {
        let number = logged.number;
        let unreadable = |error: toolyard_core::NotJson| AgentError::Unreadable {
            run: run.clone(),
            number,
            reason: error.to_string(),
        };
        let event: RunEvent = logged.event.read().map_err(unreadable)?;
        let impossible = |reason| AgentError::Impossible { run: run.clone(), number, reason };
        state.apply(&event).map_err(impossible)?;
    }
    Ok((state, events))
}

pub(crate) async fn loaded(log: &dyn RunLog, run: &RunId) -> Result<Loaded, AgentError> {
    let (state, events) = load(log, run).await?;
    let next = events.last().map_or(0, |last| last.number.saturating_add(1));
    Ok(Loaded { run: state, next, worked: worked(&events) })
}

/// How long somebody worked on a run: the times between its transitions, without those in which it waited for somebody
/// to go on with it, or only for a person.
pub fn worked(events: &[LoggedEvent]) -> Duration {
    let (mut asked, mut started) = (BTreeSet::new(), BTreeSet::new());
    let mut milliseconds: i64 = 0;
    let mut before: Option<i64> = None;
    for logged in events {
        let event = logged.event.read::<RunEvent>().ok();
        let waited = match &event {
            Some(RunEvent::Resumed { .. }) => true,
            Some(RunEvent::ApprovalGiven { .. }) => started.is_subset(&asked),
            _ => false,
        };
        let passed = before.map_or(0, |before| (logged.at - before).max(0));
        if !waited {
            milliseconds = milliseconds.saturating_add(passed);
        }
        before = Some(logged.at);
        match event {
            Some(RunEvent::ApprovalAsked { step, .. }) => drop(asked.insert(step)),
            Some(RunEvent::ApprovalGiven { step, .. }) => drop(asked.remove(&step)),
            Some(RunEvent::StepStarted { step, .. }) => drop(started.insert(step)),
            Some(RunEvent::StepEnded { step, .. }) => drop(started.remove(&step)),
            _ => {}
        }
    }
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

/// What whoever watched a run saw of its transitions, from the log alone. What cannot be read is left out.
pub fn replay(events: &[LoggedEvent]) -> impl Iterator<Item = RunNews> {
    events.iter().filter_map(|logged| {
        let event = logged.event.read().ok()?;
        Some(RunNews::Event { run: logged.run.clone(), number: logged.number, event })
    })
}

/// Ends a run that nobody works on. Steps whose outcome is unknown stay so until a person says what became of them.
pub async fn cancel(log: &dyn RunLog, run: &RunId, owner: &str) -> Result<(), AgentError> {
    if loaded(log, run).await?.run.is_over() {
        return Err(AgentError::Over(run.clone()));
    }
    let lease = log.claim(run, owner, CANCELLING).await?;
    let Loaded { run: state, next, .. } = loaded(log, run).await?;
    if state.is_over() {
        log.release(&lease, state.end().map_or(RunState::Cancelled, crate::driver::state_of)).await?;
        return Err(AgentError::Over(run.clone()));
    }
    log.append(&lease, next, &written(&RunEvent::Ended { end: RunEnd::Cancelled })).await?;
    log.release(&lease, RunState::Cancelled).await?;
    Ok(())
}

/// Asks whoever works on a run to cancel it; that is heard within its next heartbeat.
pub async fn ask_to_stop(approvals: &dyn Approvals, run: &RunId, by: &str) -> Result<(), AgentError> {
    let text = "this run shall be cancelled";
    let id = approvals.ask(run, None, QuestionKind::Cancellation, text).await;
    let id = id.map_err(AgentError::Approvals)?;
    approvals.answer(id, Answer::Allow, by).await.map_err(AgentError::Approvals)?;
    Ok(())
}

/// A person's answer to a question; whether it was the first one, which is the one that counts. Whoever wants the run to
/// go on drives it.
pub async fn answer_question(
    log: &dyn RunLog,
    approvals: &dyn Approvals,
    id: i64,
    allowed: bool,
    by: &str,
) -> Result<bool, AgentError> {
    let question = approvals.question(id).await.map_err(AgentError::Approvals)?;
    let question = question.ok_or(AgentError::NoQuestion(id))?;
    if loaded(log, &question.run).await?.run.is_over() {
        return Err(AgentError::Over(question.run));
    }
    let answer = if allowed { Answer::Allow } else { Answer::Deny };
    approvals.answer(id, answer, by).await.map_err(AgentError::Approvals)
}

/// An event as it is written down.
pub(crate) fn written(event: &RunEvent) -> RawJson {
    // Events are made of texts, numbers and maps of texts, which always have a JSON form.
    RawJson::from_serialize(event).unwrap_or_else(|_| RawJson::empty_object())
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
