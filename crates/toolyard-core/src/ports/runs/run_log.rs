//! The event log of a run: replaying all events restores its state.

use crate::{Journal, JournalFuture, Lease, RawJson, RunId};

/// A stored event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// Its run.
    pub run: RunId,
    /// Its position: 0, 1, 2, …
    pub number: i64,
    /// The event, with secrets redacted.
    pub event: RawJson,
    /// Milliseconds since 1970.
    pub at: i64,
}

/// Stores the events of runs next to their journal.
pub trait RunLog: Journal {
    /// Appends events durably, all or none; `number` is the position of the first. Fails if the lease is lost or one of the
    /// positions is taken.
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()>;

    /// Appends one event; see [`RunLog::append_all`].
    fn append<'a>(&'a self, lease: &'a Lease, number: i64, event: &'a RawJson) -> JournalFuture<'a, ()> {
        self.append_all(lease, number, std::slice::from_ref(event))
    }

    /// The events of a run from this position on.
    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>>;

    /// The last event of a run, if it has any.
    fn last_event<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Option<LoggedEvent>> {
        Box::pin(async move { Ok(self.events(run, 0).await?.pop()) })
    }
}
