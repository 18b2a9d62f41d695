//! The queue between calls, which must not wait, and the task that writes their records.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, timeout},
};
use toolyard_core::{AuditRecord, unix_millis};

use super::append::MAX_RECORDS_PER_COMMIT;

/// How long the first record of a batch waits for more: a commit costs the same for one as for hundreds.
const BATCH_DELAY: Duration = Duration::from_millis(100);
/// Why records are lost and calls refused.
pub(super) const LOST_REASON: &str = "neither the store nor the spill file could be written";

/// Records that wait to be written. Only the first of a batch wakes the writer.
#[derive(Debug)]
pub(super) struct RecordQueue {
    state: Mutex<QueueState>,
    pub(super) max_records: usize,
    /// Signals that the queue has work.
    pub(super) not_empty: Notify,
    /// Ends the wait for more records.
    flush_now: Notify,
}

#[derive(Debug, Default)]
pub(super) struct QueueState {
    pub(super) records: Vec<AuditRecord>,
    /// Records that were taken from the queue and are only in memory.
    pub(super) in_backlog: usize,
    /// The size of the spill file.
    pub(super) spill_bytes: u64,
    /// Records dropped because there was no room for them.
    pub(super) lost: u64,
    /// Calls refused because there would have been no room for their records.
    pub(super) refused: u64,
    /// The same since the start, for metrics: the two above are reset when they are recorded.
    pub(super) lost_total: u64,
    pub(super) refused_total: u64,
    /// Since when the store takes no records, while that is so.
    pub(super) outage_since: Option<Instant>,
    /// Writes that the store refused since the start.
    pub(super) failed_writes: u64,
    /// Why neither the store nor the spill file takes records, while that is so.
    pub(super) unavailable: Option<String>,
    pub(super) flushes: Flushes,
}

/// What callers wait for.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Notified once the current records are in the store or in the spill file.
    pub(super) waiters: Vec<oneshot::Sender<()>>,
    /// Whether the writer's mark in the store is no longer needed once all its records are stored.
    pub(super) retire: bool,
    /// Whether no more records will come.
    pub(super) closed: bool,
}

impl QueueState {
    /// Records that are only in memory.
    pub(super) fn waiting(&self) -> usize {
        self.records.len() + self.in_backlog
    }
}

impl Flushes {
    pub(super) fn notify_waiters(&mut self) {
        for done in self.waiters.drain(..) {
            // A caller may have stopped waiting.
            let _ = done.send(());
        }
    }

    fn is_requested(&self) -> bool {
        self.closed || !self.waiters.is_empty()
    }

    pub(super) fn merge(&mut self, newer: Self) {
        self.waiters.extend(newer.waiters);
        self.retire |= newer.retire;
        self.closed |= newer.closed;
    }
}

impl RecordQueue {
    pub(super) fn new(max_records: usize) -> Self {
        Self { state: Mutex::default(), max_records, not_empty: Notify::new(), flush_now: Notify::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    pub(super) fn wake(&self) {
        self.not_empty.notify_one();
        self.flush_now.notify_one();
    }

    /// Waits until a batch is complete.
    pub(super) async fn next_batch(&self) {
        loop {
            let (has_records, must_flush) = {
                let state = self.lock();
                (!state.records.is_empty() || self.may_report(&state), state.flushes.is_requested())
            };
            if must_flush {
                return;
            }
            if has_records {
                // The usual case is that this times out.
                let _ = timeout(BATCH_DELAY, self.flush_now.notified()).await;
                return;
            }
            self.not_empty.notified().await;
        }
    }

    /// Whether there are lost records or refused calls, and room for a record of their number.
    fn may_report(&self, state: &QueueState) -> bool {
        let has_room = state.unavailable.is_none() && state.in_backlog < self.max_records;
        has_room && (state.lost > 0 || state.refused > 0)
    }

    /// Takes all records, with one about lost records and refused calls as soon as there is room for it.
    pub(super) fn take(&self) -> (Vec<AuditRecord>, Flushes) {
        let mut state = self.lock();
        // The next batch is likely to have the same size.
        let capacity = state.records.len().min(MAX_RECORDS_PER_COMMIT);
        let mut records = std::mem::replace(&mut state.records, Vec::with_capacity(capacity));
        if self.may_report(&state) {
            if state.lost > 0 {
                records.push(AuditRecord::lost(unix_millis(), std::mem::take(&mut state.lost), LOST_REASON));
            }
            if state.refused > 0 {
                let count = std::mem::take(&mut state.refused);
                records.push(AuditRecord::refused(unix_millis(), count, LOST_REASON));
            }
        }
        state.in_backlog += records.len();
        (records, std::mem::take(&mut state.flushes))
    }
}
