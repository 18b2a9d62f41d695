//! The loop of a driver: dispatch, wait for whatever comes first, handle it.

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;
use toolyard_core::{ApprovalKind, ApprovalOutcome, ApprovalRecord, JournalError};

use super::{
    cancel_token::CancelToken,
    context::Context,
    model::model_call::ModelOutcome,
    outcome::TaskOutcome,
    run_driver::{Draining, RunDriver},
};
use crate::{AgentError, RunEnd, RunEvent, RunLimit};

enum Wakeup {
    Outcome(TaskOutcome),
    Heartbeat,
    Cancel,
    Release,
    TimeLimit,
}

impl RunDriver<'_> {
    pub(super) async fn drive(mut self, cancel: &CancelToken) -> Result<RunEnd, AgentError> {
        let end = self.run_loop(cancel).await;
        if end.is_err() {
            // Whatever went wrong, calls in flight may still journal their outcomes.
            self.abandon().await;
        }
        end
    }

    async fn run_loop(&mut self, cancel: &CancelToken) -> Result<RunEnd, AgentError> {
        self.apply_missed_decisions().await?;
        loop {
            self.advance()?;
            self.flush().await?;
            if let Some(end) = self.run.end().cloned() {
                if self.run.is_finished() {
                    self.close_requests().await;
                }
                return Ok(end);
            }
            if self.is_releasing() && self.in_flight.calls.is_empty() {
                // Logs replies that have arrived, because they were paid for. A failed model request is not logged: it
                // may have failed only because this process is stopping.
                if let Some(outcome) = self.take_ready_outcome() {
                    if !is_failed_model_call(&outcome) {
                        self.handle(outcome)?;
                    }
                    continue;
                }
                // Only the review is missing.
                if let Some(end) = self.run.answered().cloned() {
                    self.end(end)?;
                    continue;
                }
                return Err(AgentError::Released(self.context.lease.run.clone()));
            }
            match self.next_wakeup(cancel).await {
                Wakeup::Outcome(outcome) => self.handle_all(outcome)?,
                Wakeup::Heartbeat => {
                    if self.on_heartbeat().await? {
                        return self.stop(RunEnd::Cancelled).await;
                    }
                }
                Wakeup::Release => self.draining = Some(Draining::Release),
                Wakeup::Cancel => return self.stop(RunEnd::Cancelled).await,
                Wakeup::TimeLimit => {
                    let end = self.limit_reached(RunLimit::Time);
                    return self.stop(end).await;
                }
            }
        }
    }

    /// Waits for something to do. Time spent waiting only for an approval does not count towards the time limit.
    async fn next_wakeup(&mut self, cancel: &CancelToken) -> Wakeup {
        let paused_at = self.in_flight.awaits_only_approval().then(Instant::now);
        let wakeup = self.first_wakeup(cancel, paused_at.is_none()).await;
        if let Some(paused_at) = paused_at {
            self.deadline += paused_at.elapsed();
        }
        wakeup
    }

    async fn first_wakeup(&mut self, cancel: &CancelToken, has_deadline: bool) -> Wakeup {
        loop {
            if cancel.is_cancelled() {
                return Wakeup::Cancel;
            }
            let can_release = !self.is_releasing();
            if can_release && cancel.is_stopping() {
                return Wakeup::Release;
            }
            if let Some(outcome) = self.ready_outcomes.pop_front() {
                return Wakeup::Outcome(outcome);
            }
            tokio::select! {
                biased;
                // Progress comes last, so that a tool that reports much of it cannot starve the rest.
                () = cancel.cancelled() => return Wakeup::Cancel,
                () = cancel.stopping(), if can_release => return Wakeup::Release,
                () = tokio::time::sleep_until(self.deadline), if has_deadline => return Wakeup::TimeLimit,
                _ = self.heartbeat.tick() => return Wakeup::Heartbeat,
                () = cancel.decided() => return Wakeup::Heartbeat,
                Some(outcome) = self.tasks.next(), if !self.tasks.is_empty() => return Wakeup::Outcome(outcome),
                Some(update) = self.progress.recv() => self.context.watcher.on_update(&update),
            }
        }
    }

    pub(super) fn take_ready_outcome(&mut self) -> Option<TaskOutcome> {
        self.ready_outcomes.pop_front().or_else(|| self.tasks.next().now_or_never().flatten())
    }

    fn is_releasing(&self) -> bool {
        matches!(self.draining, Some(Draining::Release))
    }

    /// Handles an outcome and all that are available with it, so that their events are logged together.
    fn handle_all(&mut self, first: TaskOutcome) -> Result<(), AgentError> {
        self.handle(first)?;
        while let Some(outcome) = self.take_ready_outcome() {
            self.handle(outcome)?;
        }
        Ok(())
    }

    /// Renews the lease and applies decisions made elsewhere. Returns whether another process requested cancellation.
    async fn on_heartbeat(&mut self) -> Result<bool, AgentError> {
        let Context { agent, parts, lease, .. } = self.context;
        match self.await_while_tasks_run(parts.log.renew(lease, agent.lease_duration)).await {
            Ok(()) => {}
            Err(lost @ (JournalError::LeaseLost(_) | JournalError::UnknownRun(_))) => return Err(lost.into()),
            // The lease lasts for two more heartbeats.
            Err(error) => tracing::warn!(run = %lease.run, %error, "failed to renew the lease of a run"),
        }
        let records = self
            .await_while_tasks_run(parts.approvals.approvals_of_run(&lease.run))
            .await
            .unwrap_or_default();
        self.apply_stored_decisions(&records)?;
        let is_cancellation = |record: &ApprovalRecord| {
            record.kind == ApprovalKind::Cancellation && record.outcome == Some(ApprovalOutcome::Approved)
        };
        Ok(records.iter().any(is_cancellation))
    }

    pub(super) fn end(&mut self, end: RunEnd) -> Result<(), AgentError> {
        // A limit or a cancellation during the review does not take the answer back.
        let end = self.run.answered().cloned().unwrap_or(end);
        if end.answer().is_none() {
            self.discard_streamed();
        }
        let review = self.review_of_answer();
        self.record(RunEvent::Ended { end, effects: Some(self.run.effects()), review })
    }
}

fn is_failed_model_call(outcome: &TaskOutcome) -> bool {
    matches!(outcome, TaskOutcome::ModelReplied { outcome, .. } if matches!(**outcome, ModelOutcome { reply: Err(_), .. }))
}
