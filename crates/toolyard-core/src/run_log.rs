//! The transitions of a run in their order: whoever reads them all stands where the run stands.

use crate::{Journal, JournalFuture, Lease, RawJson, RunId};

/// One transition of a run, as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// Its run.
    pub run: RunId,
    /// Its place: 0, 1, 2, …
    pub number: i64,
    /// What happened, secrets removed.
    pub event: RawJson,
    /// Milliseconds since 1970.
    pub at: i64,
}

/// Keeps the transitions of runs beside their journal.
pub trait RunLog: Journal {
    /// Adds transitions that follow each other, all or none, durably; `number` is the place of the first. Refused if the
    /// lease is lost, or if there is one of these numbers already.
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()>;

    /// Adds one transition; see [`RunLog::append_all`].
    fn append<'a>(&'a self, lease: &'a Lease, number: i64, event: &'a RawJson) -> JournalFuture<'a, ()> {
        self.append_all(lease, number, std::slice::from_ref(event))
    }

    /// The transitions of a run from this number on.
    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>>;
}
