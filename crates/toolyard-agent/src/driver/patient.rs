//! Writes and reads that are tried again for a while: a hiccup of the store is no reason to give up a run.

use std::{fmt::Display, time::Duration};

use tokio::time::Instant;
use toolyard_core::{JournalError, Lease, RawJson, RunLog, redact_json};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Tries something for so long. What will not pass is given up at once.
pub(super) async fn patiently<T, E, Attempt>(
    patience: Duration,
    passes: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Attempt,
) -> Result<T, E>
where
    E: Display,
    Attempt: Future<Output = Result<T, E>>,
{
    let until = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt().await {
            Err(error) if passes(&error) && Instant::now() + pause < until => {
                tracing::warn!(%error, ?pause, "the store failed and is tried again");
            }
            outcome => return outcome,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether the journal may work again in a moment.
pub(super) fn is_hiccup(error: &JournalError) -> bool {
    matches!(error, JournalError::Failed(_))
}

/// Writes transitions. One attempt may have succeeded although it was said to have failed.
pub(super) async fn append(
    log: &dyn RunLog,
    lease: &Lease,
    number: i64,
    events: &[RawJson],
    patience: Duration,
) -> Result<(), JournalError> {
    let mut attempts = 0_usize;
    let appended = patiently(patience, is_hiccup, || {
        attempts += 1;
        log.append_all(lease, number, events)
    });
    match appended.await {
        Err(taken @ JournalError::NumberTaken { .. }) if attempts > 1 => {
            let written = patiently(patience, is_hiccup, || log.events(&lease.run, number)).await?;
            let wanted = events.iter().map(|event| redact_json(event).0.to_value());
            let is_ours = wanted.eq(written.iter().map(|logged| logged.event.to_value()));
            if is_ours { Ok(()) } else { Err(taken) }
        }
        outcome => outcome,
    }
}
