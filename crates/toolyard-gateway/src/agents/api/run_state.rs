//! The state of a run, rebuilt from its log.

use std::time::Duration;

use tokio::time::Instant;
use toolyard_agent::{RunEnd, RunEvent, RunUpdate, replay_updates};
use toolyard_core::{RunId, RunLog};
use toolyard_model::Usage;

use super::error::{ApiError, before};

/// How long the store may take to answer before the client gets a retryable error.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn logged_updates(log: &dyn RunLog, run: &RunId) -> Result<Vec<RunUpdate>, ApiError> {
    let events = before(Instant::now() + READ_TIMEOUT, log.events(run, 0)).await?;
    if events.is_empty() {
        return Err(ApiError::not_found("run_not_found", format!("agent run {run} does not exist")));
    }
    Ok(replay_updates(&events).collect())
}

/// How a run ended or why it is suspended, and its usage; `None` while it is active.
pub(super) async fn outcome(log: &dyn RunLog, run: &RunId) -> Result<Option<(RunEnd, Usage)>, ApiError> {
    let (mut outcome, mut usage) = (None, Usage::default());
    for update in logged_updates(log, run).await? {
        add_usage(&mut usage, &update);
        match update {
            RunUpdate::Event { event: RunEvent::Ended { end }, .. } => outcome = Some(end),
            RunUpdate::Event { event: RunEvent::Resumed { .. }, .. } => outcome = None,
            _ => {}
        }
    }
    Ok(outcome.map(|end| (end, usage)))
}

pub(super) fn add_usage(total: &mut Usage, update: &RunUpdate) {
    match update {
        RunUpdate::Event { event: RunEvent::ModelReplied { reply, .. }, .. } => {
            *total = total.saturating_add(reply.usage);
        }
        RunUpdate::Event { event: RunEvent::ModelFailed { usage, .. }, .. } => {
            *total = total.saturating_add(*usage);
        }
        _ => {}
    }
}
