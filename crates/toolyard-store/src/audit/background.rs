//! Queues audit records in memory and writes them in batches, because recording is part of every tool call.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};
use toolyard_core::{Audit, AuditRecord, ContentHash, unix_millis};

use crate::store::Store;

/// Records beyond this are dropped, and their number is recorded.
const MAX_QUEUED_RECORDS: usize = 65_536;
const MAX_RECORDS_PER_COMMIT: usize = 4_096;
/// How long the first record of a batch waits for more: a commit costs the same for one as for hundreds.
const BATCH_DELAY: Duration = Duration::from_millis(100);

/// An [`Audit`] that writes to the store in the background. Dropping it writes the remaining records.
#[derive(Debug)]
pub struct StoredAudit {
    queue: Arc<RecordQueue>,
}

/// Records that wait to be written. Only the first of a batch wakes the writer.
#[derive(Debug, Default)]
struct RecordQueue {
    state: Mutex<QueueState>,
    /// Signals that the queue is not empty.
    not_empty: Notify,
    /// Ends the wait for more records.
    flush_now: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    records: Vec<AuditRecord>,
    /// Records dropped because the queue was full.
    dropped: u64,
    /// Notified once the current records are written.
    flush_waiters: Vec<oneshot::Sender<()>>,
    closed: bool,
}

impl StoredAudit {
    /// Starts the background writer.
    pub fn start(store: &Store) -> Self {
        let queue = Arc::<RecordQueue>::default();
        tokio::spawn(write_batches(store.clone(), Arc::clone(&queue)));
        Self { queue }
    }

    /// Waits until all records so far are written.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        self.queue.lock().flush_waiters.push(done);
        self.queue.wake();
        let _ = written.await;
    }
}

impl Drop for StoredAudit {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.wake();
    }
}

impl Audit for StoredAudit {
    fn record(&self, record: AuditRecord) {
        let mut state = self.queue.lock();
        if state.records.len() >= MAX_QUEUED_RECORDS {
            state.dropped += 1;
            return;
        }
        state.records.push(record);
        let is_first = state.records.len() == 1;
        drop(state);
        if is_first {
            self.queue.not_empty.notify_one();
        }
    }
}

impl RecordQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.not_empty.notify_one();
        self.flush_now.notify_one();
    }

    fn must_flush(&self) -> bool {
        let state = self.lock();
        state.closed || !state.flush_waiters.is_empty()
    }

    fn take(&self) -> QueueState {
        let mut state = self.lock();
        let closed = state.closed;
        // The next batch is likely to have the same size.
        let records = Vec::with_capacity(state.records.len().min(MAX_RECORDS_PER_COMMIT));
        std::mem::replace(&mut *state, QueueState { records, closed, ..QueueState::default() })
    }
}

async fn write_batches(store: Store, queue: Arc<RecordQueue>) {
    loop {
        queue.not_empty.notified().await;
        if !queue.must_flush() {
            // The usual case is that this times out.
            let _ = timeout(BATCH_DELAY, queue.flush_now.notified()).await;
        }
        let QueueState { mut records, dropped, flush_waiters, closed } = queue.take();
        if dropped > 0 {
            records.push(dropped_record(dropped));
        }
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(MAX_RECORDS_PER_COMMIT));
            if let Err(error) = store.append_audit(std::mem::replace(&mut records, rest)).await {
                tracing::error!(%error, "failed to write audit records");
            }
        }
        for done in flush_waiters {
            let _ = done.send(());
        }
        if closed {
            return;
        }
    }
}

/// Records that records are missing.
fn dropped_record(count: u64) -> AuditRecord {
    AuditRecord {
        at: unix_millis(),
        caller: "toolyard".to_owned(),
        call: String::new(),
        tool: String::new(),
        sources: Vec::new(),
        arguments: ContentHash::of(""),
        result: None,
        outcome: format!("{count} records lost: the store could not keep up"),
        milliseconds: 0,
    }
}
