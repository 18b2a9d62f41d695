//! Functions that need only the log of a run, no tools or models: they read its state and history, cancel it, and decide on
//! its approval requests.

mod memory;

use std::{collections::BTreeSet, time::Duration};

use toolyard_core::{
    ApprovalId, ApprovalKind, ApprovalOutcome, Approvals, JournalError, LoggedEvent, RawJson, RunId, RunLog,
    RunRecord, RunState,
};

pub use memory::MemoryRunLog;

use crate::{AgentError, ApprovalDecision, RequestFingerprint, Run, RunEnd, RunEvent, RunUpdate};

/// The kind of run that agents create.
pub const AGENT_RUN_KIND: &str = "agent";

/// Field of [`RunRecord::detail`] that holds the [`RequestFingerprint`].
pub(crate) const FINGERPRINT_FIELD: &str = "fingerprint";

const CANCEL_LEASE_DURATION: Duration = Duration::from_secs(30);

/// A run, and what its driver must know about its log.
#[derive(Debug)]
pub(crate) struct LoadedRun {
    pub(crate) run: Run,
    /// Position of the next event in the log.
    pub(crate) next_number: i64,
    /// See [`active_duration`].
    pub(crate) active_time: Duration,
    /// Whether the run was closed before it was started, so that its log has no end; see [`crate::discard_run`].
    pub(crate) is_discarded: bool,
}

/// Reads a run and its events from the log.
pub async fn load_run(log: &dyn RunLog, run: &RunId) -> Result<(Run, Vec<LoggedEvent>), AgentError> {
    let (_, state, events) = load_with_record(log, run).await?;
    Ok((state, events))
}

async fn load_with_record(
    log: &dyn RunLog,
    run: &RunId,
) -> Result<(RunRecord, Run, Vec<LoggedEvent>), AgentError> {
    let record = log.run(run).await?;
    if record.kind != AGENT_RUN_KIND {
        return Err(AgentError::OtherKind { run: run.clone(), kind: record.kind });
    }
    let events = log.events(run, 0).await?;
    let mut state = Run::new();
    for logged in &events {
        let number = logged.number;
        let unreadable = |error: toolyard_core::InvalidJson| AgentError::Unreadable {
            run: run.clone(),
            number,
            reason: error.to_string(),
        };
        let event: RunEvent = logged.event.read().map_err(unreadable)?;
        let invalid = |reason| AgentError::InvalidEvent { run: run.clone(), number, reason };
        state.apply(&event).map_err(invalid)?;
    }
    Ok((record, state, events))
}

pub(crate) async fn load_for_driver(log: &dyn RunLog, run: &RunId) -> Result<LoadedRun, AgentError> {
    let (record, run, events) = load_with_record(log, run).await?;
    let next_number = events.last().map_or(0, |last| last.number.saturating_add(1));
    let is_discarded = record.state == RunState::Cancelled && !run.is_finished();
    Ok(LoadedRun { run, next_number, active_time: active_duration(&events), is_discarded })
}

/// How long a run was worked on: the times between its events, without those in which it waited to be resumed or only
/// for an approval.
pub(crate) fn active_duration(events: &[LoggedEvent]) -> Duration {
    let (mut awaiting_approval, mut started) = (BTreeSet::new(), BTreeSet::new());
    let mut milliseconds: i64 = 0;
    let mut previous: Option<i64> = None;
    for logged in events {
        let event = logged.event.read::<RunEvent>().ok();
        let was_idle = match &event {
            Some(RunEvent::Resumed { .. }) => true,
            Some(RunEvent::ApprovalDecided { .. }) => started.is_subset(&awaiting_approval),
            _ => false,
        };
        let elapsed = previous.map_or(0, |previous| (logged.at - previous).max(0));
        if !was_idle {
            milliseconds = milliseconds.saturating_add(elapsed);
        }
        previous = Some(logged.at);
        match event {
            Some(RunEvent::ApprovalRequested { step, .. }) => drop(awaiting_approval.insert(step)),
            Some(RunEvent::ApprovalDecided { step, .. }) => drop(awaiting_approval.remove(&step)),
            Some(RunEvent::StepStarted { step, .. }) => drop(started.insert(step)),
            Some(RunEvent::StepEnded { step, .. }) => drop(started.remove(&step)),
            _ => {}
        }
    }
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

/// The logged events as updates for a [`RunWatcher`](crate::RunWatcher). Unreadable events are skipped.
pub fn replay_updates(events: &[LoggedEvent]) -> impl Iterator<Item = RunUpdate> {
    events.iter().filter_map(|logged| {
        let event = logged.event.read().ok()?;
        Some(RunUpdate::Event { run: logged.run.clone(), number: logged.number, event })
    })
}

/// Cancels a run that no process drives, and denies the calls that wait for an approval. Steps whose outcome is unknown stay so
/// until a user resolves them.
pub async fn cancel_run(
    log: &dyn RunLog,
    approvals: &dyn Approvals,
    run: &RunId,
    owner: &str,
) -> Result<(), AgentError> {
    if load_run(log, run).await?.0.is_finished() {
        return Err(AgentError::Finished(run.clone()));
    }
    let lease = log.claim(run, owner, CANCEL_LEASE_DURATION).await?;
    let LoadedRun { run: state, next_number, .. } = load_for_driver(log, run).await?;
    if state.is_finished() {
        log.release(&lease, state.end().map_or(RunState::Cancelled, run_state)).await?;
        return Err(AgentError::Finished(run.clone()));
    }
    // An answer stays, if only its review is missing.
    let end = state.answered().cloned().unwrap_or(RunEnd::Cancelled);
    let released = run_state(&end);
    let ended = RunEvent::Ended { end, effects: Some(state.effects()), review: None };
    log.append(&lease, next_number, &to_json(&ended)).await?;
    log.release(&lease, released).await?;
    let pending = approvals.approvals_of_run(run).await.map_err(AgentError::Approvals)?;
    for request in pending.iter().filter(|request| request.outcome.is_none()) {
        approvals.decide(request.id, ApprovalOutcome::Denied, owner).await.map_err(AgentError::Approvals)?;
    }
    Ok(())
}

/// Asks the process that drives a run to cancel it, which it does at its next heartbeat.
pub async fn request_cancellation(
    approvals: &dyn Approvals,
    run: &RunId,
    by: &str,
) -> Result<(), AgentError> {
    let text = "this run shall be cancelled";
    let id = approvals.request_approval(run, None, ApprovalKind::Cancellation, text).await;
    let id = id.map_err(AgentError::Approvals)?;
    approvals.decide(id, ApprovalOutcome::Approved, by).await.map_err(AgentError::Approvals)?;
    Ok(())
}

/// Stores an approver's decision. Returns whether it was the first one, which is the one that counts. The run continues
/// when it is driven again.
pub async fn decide_approval(
    log: &dyn RunLog,
    approvals: &dyn Approvals,
    id: ApprovalId,
    decision: ApprovalDecision,
    by: &str,
) -> Result<bool, AgentError> {
    let request = approvals.approval(id).await.map_err(AgentError::Approvals)?;
    let request = request.ok_or(AgentError::UnknownApproval(id))?;
    if load_run(log, &request.run).await?.0.is_finished() {
        return Err(AgentError::Finished(request.run));
    }
    approvals.decide(id, decision.outcome(), by).await.map_err(AgentError::Approvals)
}

/// The fingerprint of the client request that created a run.
pub fn request_fingerprint(run: &RunRecord) -> Option<RequestFingerprint> {
    serde_json::from_value(run.detail.to_value().get_mut(FINGERPRINT_FIELD)?.take()).ok()
}

pub(crate) fn to_json(event: &RunEvent) -> RawJson {
    // Events consist of strings, numbers and maps with string keys, which always serialize.
    RawJson::from_serialize(event).unwrap_or_else(|_| RawJson::empty_object())
}

/// The journal's state for a run that ended like this.
pub(crate) fn run_state(end: &RunEnd) -> RunState {
    match end {
        RunEnd::Answered { .. } | RunEnd::Planned => RunState::Done,
        RunEnd::Partial { .. } | RunEnd::Failed { .. } | RunEnd::LimitReached { .. } => RunState::Failed,
        RunEnd::Suspended { .. } => RunState::Open,
        RunEnd::Cancelled => RunState::Cancelled,
    }
}

/// Closes a run whose end is logged: the process that logged it may have died before it closed the run.
///
/// # Errors
/// If a process drives the run, or the store fails.
pub async fn close_run(log: &dyn RunLog, run: &RunId, end: &RunEnd, owner: &str) -> Result<(), JournalError> {
    let lease = log.claim(run, owner, CANCEL_LEASE_DURATION).await?;
    log.release(&lease, run_state(end)).await
}

#[cfg(test)]
mod tests;
