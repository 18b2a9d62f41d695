//! Drives runs: starts tasks, waits for whichever ends first, and logs every event before anything follows from it.
//!
//! All tasks of a run are futures that its driver polls in one set; no task or thread is spawned per step.
//!
//! | file or folder | contents |
//! |---|---|
//! | `create.rs` | creates runs, and withdraws those that the store accepted too late |
//! | `run_driver.rs`, `context.rs` | the driver of one run: applies and logs events |
//! | `event_loop.rs` | the loop: dispatch, wait, handle |
//! | `dispatch.rs` | starts what may start |
//! | `outcome.rs`, `handle_outcome.rs` | results of tasks, and what follows from them |
//! | `steps/` | a step's call: arguments, permission, execution, verification |
//! | `model/` | model requests, and what follows from their replies |
//! | `approval/` | approval requests and decisions |
//! | `limits.rs`, `quota_wait.rs` | enforces the run's limits, and waits for quotas |
//! | `operation.rs` | reports runs, plans, steps and model calls to telemetry |
//! | `shutdown.rs`, `cancel_token.rs` | stops a run early |
//! | `lease.rs`, `retry.rs` | the lease on the run, and retries of store operations |

mod approval;
mod cancel_token;
mod context;
mod create;
mod dispatch;
mod event_loop;
mod handle_outcome;
mod lease;
mod limits;
mod model;
mod operation;
mod outcome;
mod quota_wait;
mod retry;
mod run_driver;
mod shutdown;
mod steps;

use toolyard_core::{Lease, RunId, RunState};

pub use cancel_token::CancelToken;
pub use create::{discard_run, is_being_created, owner_of_run};
pub use operation::run_trace_id;
pub(crate) use steps::resolved_tool::{ResolvedTool, agent_profile, stricter};

use self::{lease::LeaseGuard, operation::RunOperation, run_driver::RunDriver};
use crate::{
    Agent, AgentError, RunEnd, RunEvent, RunRequest, RunWatcher,
    run_log::{close_run, load_for_driver, run_state, to_json},
};

impl Agent {
    /// Drives a run until it finishes or is suspended, and returns how it ended. A finished run is not driven again.
    ///
    /// Dropping the future leaves the run as it is: it can be driven again, or cancelled by [`crate::cancel_run`]. After
    /// [`CancelToken::release`], the result is [`AgentError::Released`] once its calls have ended and its lease is
    /// given back.
    pub async fn drive(
        &self,
        run: &RunId,
        watcher: &dyn RunWatcher,
        cancel: &CancelToken,
    ) -> Result<RunEnd, AgentError> {
        let loaded = load_for_driver(&*self.parts.log, run).await?;
        if let (true, Some(end)) = (loaded.run.is_finished(), loaded.run.end()) {
            self.close_if_open(run, end).await?;
            return Ok(end.clone());
        }
        if loaded.is_discarded {
            return Ok(RunEnd::Cancelled);
        }
        loop {
            if cancel.is_stopping() && !cancel.is_cancelled() {
                return Err(AgentError::Released(run.clone()));
            }
            let lease = self.parts.log.claim(run, &self.parts.owner, self.lease_duration).await?;
            let end = self.drive_leased(&lease, watcher, cancel).await?;
            // A decision that arrived while the run was being suspended must not get lost.
            let was_decided = matches!(end, RunEnd::Suspended { .. }) && self.has_decision(run).await?;
            if !was_decided || cancel.is_cancelled() {
                return Ok(end);
            }
        }
    }

    /// Closes a finished run that its process left open.
    async fn close_if_open(&self, run: &RunId, end: &RunEnd) -> Result<(), AgentError> {
        if self.parts.log.run(run).await?.state == RunState::Open
            && let Err(error) = close_run(&*self.parts.log, run, end, &self.parts.owner).await
        {
            // Its process may be about to close it.
            tracing::debug!(%run, %error, "a finished run was not closed");
        }
        Ok(())
    }

    /// Creates a run and drives it.
    pub async fn ask(
        &self,
        request: RunRequest,
        watcher: &dyn RunWatcher,
        cancel: &CancelToken,
    ) -> Result<(RunId, RunEnd), AgentError> {
        let run = self.create_run(request).await?;
        let end = self.drive(&run, watcher, cancel).await?;
        Ok((run, end))
    }

    async fn drive_leased(
        &self,
        lease: &Lease,
        watcher: &dyn RunWatcher,
        cancel: &CancelToken,
    ) -> Result<RunEnd, AgentError> {
        let mut guard = LeaseGuard::new(&self.parts.log, lease);
        // Only the lease holder writes, so the state loaded now stays current.
        let loaded = load_for_driver(&*self.parts.log, &lease.run).await?;
        if let (true, Some(end)) = (loaded.run.is_finished(), loaded.run.end()) {
            guard.release(run_state(end)).await?;
            return Ok(end.clone());
        }
        if loaded.is_discarded {
            guard.release(RunState::Cancelled).await?;
            return Ok(RunEnd::Cancelled);
        }
        if loaded.run.request().is_none() {
            // The process that created the run died before it logged the request.
            let cancelled = to_json(&RunEvent::ended(RunEnd::Cancelled));
            self.parts.log.append(lease, loaded.next_number, &cancelled).await?;
            guard.release(RunState::Cancelled).await?;
            return Ok(RunEnd::Cancelled);
        }
        let is_resumed = loaded.run.end().is_some() || loaded.next_number > 1;
        let agent = self.for_run(&loaded.run);
        let operation = RunOperation::start(&agent, lease, loaded.run.request(), is_resumed);
        let mut driver = RunDriver::new(&agent, lease, watcher, loaded, operation.span);
        let resumed = match is_resumed {
            true => driver.record(RunEvent::Resumed { owner: self.parts.owner.clone() }),
            false => Ok(()),
        };
        let result = match resumed {
            Ok(()) => Box::pin(driver.drive(cancel)).await,
            Err(error) => Err(error),
        };
        operation.end(&result);
        match &result {
            // The end is logged, so the caller gets it even if the lease cannot be given back.
            Ok(end) => {
                if let Err(error) = guard.release(run_state(end)).await {
                    tracing::warn!(run = %lease.run, %error, "failed to release the lease of a finished run");
                }
            }
            Err(AgentError::Released(_)) => guard.release(RunState::Open).await?,
            Err(_) => {}
        }
        result
    }
}

#[cfg(test)]
pub(crate) mod tests;
