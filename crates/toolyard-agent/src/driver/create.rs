//! Creates runs. A run that the store did not accept in time is withdrawn: no process ever drives it.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout_at},
};
use toolyard_core::{ContentHash, JournalError, Lease, RawJson, RunId, RunLog, RunRecord, RunState};

use crate::{
    Agent, AgentError, RunEvent, RunRequest,
    chat::messages_of_run,
    run_log::{AGENT_RUN_KIND, FINGERPRINT_FIELD, to_json},
};

/// Characters of its question that a run's record holds.
const MAX_RECORDED_QUESTION_CHARS: usize = 200;

/// The field of a run's detail that says whose it is.
const OWNER_FIELD: &str = "owner";
/// Ends the name of the owner of a run that is being created.
const CREATOR_SUFFIX: &str = "-creates";
/// Duration of the lease on a run that is being created.
const CREATION_LEASE: Duration = Duration::from_secs(10);

/// How many times this process tries to withdraw a run, and the pause between two attempts.
const MAX_WITHDRAWAL_ATTEMPTS: usize = 60;
const WITHDRAWAL_INTERVAL: Duration = Duration::from_secs(1);

impl Agent {
    /// Creates a run and logs its request, without driving it.
    pub async fn create_run(&self, request: RunRequest) -> Result<RunId, AgentError> {
        let lease = self.prepare_run(request).await?;
        self.parts.log.release(&lease, RunState::Open).await?;
        Ok(lease.run)
    }

    /// Like [`Agent::create_run`], but fails if the store did not accept the run by the deadline. A run whose creation failed
    /// is not driven later, not even if the store received it.
    ///
    /// # Errors
    /// [`AgentError::NotStarted`] after the deadline.
    pub async fn create_run_before(
        &self,
        request: RunRequest,
        deadline: Instant,
    ) -> Result<RunId, AgentError> {
        let lease =
            timeout_at(deadline, self.prepare_run(request)).await.map_err(|_| AgentError::NotStarted)??;
        let (log, released) = (Arc::clone(&self.parts.log), lease.clone());
        // The release makes the run available to all processes, so its outcome must become known.
        let mut release = tokio::spawn(async move { log.release(&released, RunState::Open).await });
        let accepted = timeout_at(deadline, &mut release).await;
        // A process that was suspended meanwhile may have both: a late deadline and an accepted run.
        if matches!(accepted, Ok(Ok(Ok(())))) && Instant::now() <= deadline {
            return Ok(lease.run);
        }
        let pending = accepted.is_err().then_some(release);
        tokio::spawn(withdraw(Arc::clone(&self.parts.log), lease, pending));
        Err(AgentError::NotStarted)
    }

    /// Creates a run, logs its request, and records its question in its conversation. Until the lease is released, no process
    /// may drive the run.
    async fn prepare_run(&self, request: RunRequest) -> Result<Lease, AgentError> {
        let parts = &self.parts;
        let question: String = request.question.chars().take(MAX_RECORDED_QUESTION_CHARS).collect();
        let conversation = request.conversation.as_ref().map(|id| &id.name);
        let mut detail = json!({"agent": request.agent, "question": question, "caller": request.caller,
            "conversation": conversation});
        let owner = request.identity.as_ref().filter(|identity| identity.is_distinguished());
        if let (Some(identity), Some(detail)) = (owner, detail.as_object_mut()) {
            detail.insert(OWNER_FIELD.to_owned(), json!(identity.owner()));
        }
        if let (Some(fingerprint), Some(detail)) = (&request.fingerprint, detail.as_object_mut()) {
            detail.insert(FINGERPRINT_FIELD.to_owned(), json!(fingerprint));
        }
        let run = parts.log.create_run(AGENT_RUN_KIND, &RawJson::from(detail)).await?;
        let conversation =
            request.recorded_conversation().cloned().map(|id| (id, messages_of_run(&request.question, &run)));
        let owner = format!("{}{CREATOR_SUFFIX}", parts.owner);
        let lease = parts.log.claim(&run, &owner, CREATION_LEASE).await?;
        parts.log.append(&lease, 0, &to_json(&RunEvent::Requested { request })).await?;
        if let Some((id, messages)) = conversation {
            let recorded = self.conversations.append_messages(&id, &messages).await;
            recorded.map_err(|error| JournalError::Storage(error.to_string()))?;
        }
        Ok(lease)
    }
}

/// Whose the run is, if callers are told apart ([`toolyard_core::CallerIdentity::owner`]).
pub fn owner_of_run(run: &RunRecord) -> Option<ContentHash> {
    run.detail.to_value().get(OWNER_FIELD).cloned().and_then(|owner| serde_json::from_value(owner).ok())
}

/// Whether the run is still being created or its creator is gone: no client was told that it was started.
pub fn is_being_created(run: &RunRecord) -> bool {
    run.owner.as_deref().is_some_and(|owner| owner.ends_with(CREATOR_SUFFIX))
}

/// Closes a run that was never started, so that nobody drives it. Its log has no end.
pub async fn discard_run(log: &dyn RunLog, run: &RunId, owner: &str) -> Result<(), JournalError> {
    let lease = log.claim(run, &format!("{owner}{CREATOR_SUFFIX}"), CREATION_LEASE).await?;
    log.release(&lease, RunState::Cancelled).await
}

/// Closes a run whose client was told that it was not started. Its lease may have been released nevertheless.
async fn withdraw(log: Arc<dyn RunLog>, lease: Lease, pending: Option<JoinHandle<Result<(), JournalError>>>) {
    if let Some(release) = pending {
        // Whatever its outcome, the run is withdrawn.
        let _ = release.await;
    }
    for _ in 0..MAX_WITHDRAWAL_ATTEMPTS {
        let withdrawn = match log.release(&lease, RunState::Cancelled).await {
            Err(JournalError::LeaseLost(run)) => {
                let owner = lease.owner.trim_end_matches(CREATOR_SUFFIX);
                discard_run(&*log, &run, owner).await
            }
            released => released,
        };
        match withdrawn {
            Err(error @ JournalError::Storage(_)) => {
                tracing::debug!(run = %lease.run, %error, "failed to withdraw a run; retrying");
            }
            Err(error) => {
                tracing::warn!(run = %lease.run, %error, "failed to withdraw a run");
                return;
            }
            Ok(()) => return,
        }
        sleep(WITHDRAWAL_INTERVAL).await;
    }
    tracing::warn!(run = %lease.run, "gave up withdrawing a run; its client was told that it was not started");
}
