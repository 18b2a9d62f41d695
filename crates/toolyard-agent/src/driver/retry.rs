//! Retries store operations for a limited time, so that a transient failure does not end a run.

use std::{fmt::Display, time::Duration};

use tokio::time::Instant;
use toolyard_core::{JournalError, Lease, RawJson, RunLog, redact_json};

const INITIAL_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(2);

/// Repeats `attempt` with exponential backoff for up to `window`, as long as its error is transient.
pub(super) async fn retry<T, E, Attempt>(
    window: Duration,
    is_transient: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Attempt,
) -> Result<T, E>
where
    E: Display,
    Attempt: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + window;
    let mut backoff = INITIAL_BACKOFF;
    loop {
        match attempt().await {
            Err(error) if is_transient(&error) && Instant::now() + backoff < deadline => {
                tracing::warn!(%error, ?backoff, "a store operation failed and is retried");
            }
            outcome => return outcome,
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

pub(super) fn is_transient(error: &JournalError) -> bool {
    matches!(error, JournalError::Storage(_))
}

/// Appends events with retries. An attempt that reported a failure may have succeeded nevertheless.
pub(super) async fn append_events(
    log: &dyn RunLog,
    lease: &Lease,
    first_number: i64,
    events: &[RawJson],
    window: Duration,
) -> Result<(), JournalError> {
    let mut attempts = 0_usize;
    let appended = retry(window, is_transient, || {
        attempts += 1;
        log.append_all(lease, first_number, events)
    });
    match appended.await {
        Err(exists @ JournalError::EventExists { .. }) if attempts > 1 => {
            let logged = retry(window, is_transient, || log.events(&lease.run, first_number)).await?;
            let expected = events.iter().map(|event| redact_json(event).0.to_value());
            let is_ours = expected.eq(logged.iter().map(|logged| logged.event.to_value()));
            if is_ours { Ok(()) } else { Err(exists) }
        }
        outcome => outcome,
    }
}
