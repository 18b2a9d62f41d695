//! Queues audit records in memory and writes them in batches, because recording is part of every tool call. Batches that
//! the store does not take go to the spill file and from there, in order, to the store once it is back.

use std::{path::PathBuf, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::oneshot,
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};
use toolyard_core::{Audit, AuditRecord, AuditUnavailable, BoxFuture};

use super::{
    append::{AuditBatch, BatchId, MAX_RECORDS_PER_COMMIT, redact_records},
    backlog::Backlog,
    queue::{Flushes, LOST_REASON, RecordQueue},
    spill::{SpillError, SpillLocation},
    take_over::{blocking, take_over},
};
use crate::{error::StoreError, sql::Durability, store::Store};

/// The pause after the first failed write; it doubles up to the maximum.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long the end of the process waits for records that neither the store nor the spill file takes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the answer of a call waits for its record, if records are required.
const DURABLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Limits of a [`StoredAudit`], and what it does when they are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// The folder of the spill file of a PostgreSQL store; without one, records wait in memory only. The spill file of a
    /// SQLite store is beside the store.
    pub data_folder: Option<PathBuf>,
    /// Whether calls are refused while their records cannot be kept, and answers wait until they are. Otherwise records that
    /// cannot be kept are counted, and their number is recorded.
    pub required: bool,
    /// How many records may wait in memory.
    pub max_queued_records: usize,
    /// How large the spill file may become.
    pub max_spill_bytes: u64,
    /// How long the store may take for a write before records go to the spill file.
    pub store_timeout: Duration,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            data_folder: None,
            required: false,
            max_queued_records: 65_536,
            max_spill_bytes: 1 << 30,
            store_timeout: Duration::from_secs(2),
        }
    }
}

/// An [`Audit`] that writes to the store in the background. Dropping it writes the remaining records.
#[derive(Debug)]
pub struct StoredAudit {
    queue: Arc<RecordQueue>,
    required: bool,
    take_over: Option<AbortHandle>,
}

/// The queue of an audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditQueueStatus {
    /// Records that are only in memory.
    pub queued: usize,
    /// The size of this process's spill file; 0 while the store takes records.
    pub spill_bytes: u64,
    /// Records that were dropped since the start.
    pub lost: u64,
    /// Calls that were refused since the start because their records could not be kept.
    pub refused_calls: u64,
    /// How long the store has taken no records; `None` while it takes them.
    pub outage: Option<Duration>,
    /// Writes that failed since the start. Their records are written again.
    pub failed_writes: u64,
}

impl StoredAudit {
    /// Starts the background writer, and appends what earlier processes left in spill files.
    pub fn start(store: &Store, config: &AuditConfig) -> Self {
        let queue = Arc::new(RecordQueue::new(config.max_queued_records));
        let location = SpillLocation::of(store.location(), config.data_folder.as_deref());
        let take_over =
            location.clone().map(|location| tokio::spawn(take_over(store.clone(), location)).abort_handle());
        let writer = new_writer();
        let backlog = Backlog::new(location, config.max_spill_bytes, &writer);
        let writer = BackgroundWriter {
            store: store.clone(),
            queue: Arc::clone(&queue),
            backlog: Arc::new(Mutex::new(backlog)),
            store_timeout: config.store_timeout,
            durability: if config.required { Durability::Synced } else { Durability::Relaxed },
            id: BatchId { writer, number: 0 },
            flushes: Flushes::default(),
            failing: None,
        };
        tokio::spawn(writer.run());
        Self { queue, required: config.required, take_over }
    }

    /// What waits to be written, and what could not be kept.
    pub fn queue_status(&self) -> AuditQueueStatus {
        let state = self.queue.lock();
        AuditQueueStatus {
            queued: state.waiting(),
            spill_bytes: state.spill_bytes,
            lost: state.lost_total,
            refused_calls: state.refused_total,
            outage: state.outage_since.map(|since| since.elapsed()),
            failed_writes: state.failed_writes,
        }
    }

    /// Waits until all records so far are in the store or, if the store does not take them, in the spill file.
    pub async fn flush(&self) {
        self.flush_with(false).await;
    }

    /// Flushes for the last time, unless more calls are recorded. Gives up after a few seconds if records can be kept
    /// neither in the store nor in the spill file.
    pub async fn close(&self) {
        if timeout(CLOSE_TIMEOUT, self.flush_with(true)).await.is_err() {
            let records = self.queue.lock().waiting();
            tracing::error!(records, "audit records are lost: {LOST_REASON} until the end");
        }
    }

    async fn flush_with(&self, retire: bool) {
        let (done, written) = oneshot::channel();
        {
            let mut state = self.queue.lock();
            state.flushes.waiters.push(done);
            state.flushes.retire |= retire;
        }
        self.queue.wake();
        let _ = written.await;
    }
}

impl Drop for StoredAudit {
    fn drop(&mut self) {
        self.queue.lock().flushes.closed = true;
        self.queue.wake();
        if let Some(task) = &self.take_over {
            task.abort();
        }
    }
}

impl Audit for StoredAudit {
    fn record(&self, record: AuditRecord) {
        let mut state = self.queue.lock();
        if state.waiting() >= self.queue.max_records {
            state.lost += 1;
            state.lost_total += 1;
            return;
        }
        state.records.push(record);
        let is_first = state.records.len() == 1;
        drop(state);
        if is_first {
            self.queue.not_empty.notify_one();
        }
    }

    fn admit(&self) -> Result<(), AuditUnavailable> {
        if !self.required {
            return Ok(());
        }
        let mut state = self.queue.lock();
        // The other half of the queue is for calls that are being executed.
        let reason = match &state.unavailable {
            Some(reason) => reason.clone(),
            None if state.waiting() < self.queue.max_records / 2 => return Ok(()),
            None => "too many records wait for the store".to_owned(),
        };
        state.refused += 1;
        state.refused_total += 1;
        Err(AuditUnavailable { reason })
    }

    fn wait_until_durable(&self) -> Option<BoxFuture<'_, Result<(), AuditUnavailable>>> {
        // Calls that wait at the same time share a commit.
        let wait = async {
            timeout(DURABLE_TIMEOUT, self.flush()).await.map_err(|_elapsed| {
                let state = self.queue.lock();
                let slow = || format!("the store has not taken it within {} s", DURABLE_TIMEOUT.as_secs());
                AuditUnavailable { reason: state.unavailable.clone().unwrap_or_else(slow) }
            })
        };
        self.required.then(|| Box::pin(wait) as _)
    }
}

/// The task that moves records from the queue to the store.
struct BackgroundWriter {
    store: Store,
    queue: Arc<RecordQueue>,
    backlog: Arc<Mutex<Backlog>>,
    store_timeout: Duration,
    durability: Durability,
    /// The last batch.
    id: BatchId,
    /// What callers wait for now.
    flushes: Flushes,
    /// Set while the store does not take records.
    failing: Option<Outage>,
}

/// A time in which the store does not take records.
#[derive(Debug)]
struct Outage {
    retry_delay: Duration,
    /// Why the store failed, until that is logged.
    reason: Option<String>,
}

impl BackgroundWriter {
    async fn run(mut self) {
        loop {
            self.queue.next_batch().await;
            self.collect();
            self.drain().await;
            self.finish_flushes().await;
            if self.flushes.closed {
                let records = self.queue.lock().waiting();
                if records > 0 {
                    tracing::error!(records, "audit records are lost: {LOST_REASON} until the end");
                }
                return;
            }
        }
    }

    /// Moves the queued records to the backlog.
    fn collect(&mut self) {
        let (records, flushes) = self.queue.take();
        self.flushes.merge(flushes);
        let mut records = redact_records(records);
        let mut backlog = lock(&self.backlog);
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(MAX_RECORDS_PER_COMMIT));
            self.id.number += 1;
            backlog.push(AuditBatch {
                id: Some(self.id.clone()),
                records: std::mem::replace(&mut records, rest),
            });
        }
    }

    /// Appends the backlog to the store. While the store does not take it, the backlog and what is recorded meanwhile go to
    /// the spill file. Returns once everything is stored or, if no more records come, kept in the spill file.
    async fn drain(&mut self) {
        let mut deadline = None;
        loop {
            let batches =
                self.with_backlog(Backlog::has_file, |backlog| backlog.front(MAX_RECORDS_PER_COMMIT)).await;
            if batches.is_empty() {
                return self.end_outage();
            }
            let count = batches.len();
            let mut write = Box::pin(append(self.store.clone(), batches, self.durability));
            let in_time = match self.failing {
                None => timeout(self.store_timeout, &mut write).await.ok(),
                Some(_) => None,
            };
            let written = match in_time {
                Some(written) => Some(written),
                None => {
                    self.begin_outage("the store does not respond");
                    self.spill_until(write).await
                }
            };
            match written {
                Some(Ok(())) => self.acknowledge(count).await,
                Some(Err(error)) => {
                    self.queue.lock().failed_writes += 1;
                    let outage = self.begin_outage(&error.to_string());
                    let delay = outage.retry_delay;
                    outage.retry_delay = (delay * 2).min(MAX_RETRY_DELAY);
                    self.spill_until(sleep(delay)).await;
                }
                None => {}
            }
            if self.failing.is_some() {
                self.spill().await;
                let give_up = self
                    .flushes
                    .closed
                    .then(|| *deadline.get_or_insert_with(|| Instant::now() + CLOSE_TIMEOUT));
                if self.is_closed_and_kept() || give_up.is_some_and(|deadline| Instant::now() >= deadline) {
                    return;
                }
            }
        }
    }

    /// Removes batches that are stored from the backlog. Without a spill file, the outage is over.
    async fn acknowledge(&mut self, count: usize) {
        self.with_backlog(Backlog::has_file, move |backlog| backlog.acknowledge(count)).await;
        self.update_queue(None);
        if !lock(&self.backlog).has_file() {
            self.end_outage();
        }
        if let Some(outage) = &mut self.failing {
            outage.retry_delay = MIN_RETRY_DELAY;
        }
    }

    /// Whether no more records come, and all are in the spill file.
    fn is_closed_and_kept(&self) -> bool {
        self.flushes.closed && lock(&self.backlog).records_in_memory() == 0
    }

    /// Moves records to the spill file until `wait` is over; `None` if all are there and no more come.
    async fn spill_until<T>(&mut self, wait: impl Future<Output = T>) -> Option<T> {
        let mut wait = std::pin::pin!(wait);
        let queue = Arc::clone(&self.queue);
        loop {
            self.spill().await;
            if self.is_closed_and_kept() {
                return None;
            }
            tokio::select! {
                outcome = &mut wait => return Some(outcome),
                () = queue.next_batch() => {}
                // The spill file may have failed, and may work again.
                () = sleep(MAX_RETRY_DELAY) => {}
            }
        }
    }

    /// Moves the queue and the backlog in memory to the spill file.
    async fn spill(&mut self) {
        self.collect();
        let spilled = self.with_backlog(|_| true, Backlog::spill).await;
        let is_kept = spilled.is_ok();
        self.update_queue(spilled.err());
        if is_kept {
            self.log_outage();
            self.flushes.notify_waiters();
        }
    }

    /// Logs an outage once, with the file that keeps its records.
    fn log_outage(&mut self) {
        let backlog = lock(&self.backlog);
        let reason = self.failing.as_mut().and_then(|outage| outage.reason.take());
        if let (Some(error), Some(file)) = (reason, backlog.file_path()) {
            let file = file.display();
            tracing::warn!(error = &*error, %file, "the store takes no audit records; they wait in a file, and none is lost");
        }
    }

    /// Tells those who record how many records are in memory, and whether more can be kept.
    fn update_queue(&self, failure: Option<SpillError>) {
        let (in_backlog, spill_bytes) = {
            let backlog = lock(&self.backlog);
            (backlog.records_in_memory(), backlog.spill_bytes())
        };
        let mut state = self.queue.lock();
        state.in_backlog = in_backlog;
        state.spill_bytes = spill_bytes;
        match failure {
            Some(error) => {
                if state.unavailable.is_none() {
                    let store_error = self.failing.as_ref().and_then(|outage| outage.reason.as_deref());
                    tracing::error!(%error, store_error, "audit records are kept in memory only");
                }
                state.unavailable = Some(format!("the store cannot be written, and {error}"));
            }
            None if in_backlog == 0 => state.unavailable = None,
            None => {}
        }
    }

    /// Notes that the store does not take records.
    fn begin_outage(&mut self, error: &str) -> &mut Outage {
        self.queue.lock().outage_since.get_or_insert_with(Instant::now);
        self.failing
            .get_or_insert_with(|| Outage { retry_delay: MIN_RETRY_DELAY, reason: Some(error.to_owned()) })
    }

    fn end_outage(&mut self) {
        if self.failing.take().is_some() {
            let since = self.queue.lock().outage_since.take();
            let seconds = since.map_or(0, |since| since.elapsed().as_secs());
            tracing::warn!(seconds, "writing audit records to the store works again");
        }
    }

    async fn finish_flushes(&mut self) {
        let is_stored = lock(&self.backlog).is_empty();
        if (self.flushes.retire || self.flushes.closed) && is_stored && self.id.number > 0 {
            let former = std::mem::replace(&mut self.id, BatchId { writer: new_writer(), number: 0 });
            // Its mark is one small row; the next process can do without.
            let _ = timeout(self.store_timeout, self.store.forget_audit_writer(former.writer)).await;
        }
        self.flushes.retire = false;
        self.flushes.notify_waiters();
    }

    /// Works on the backlog, on a thread for blocking work if the work reads or writes files.
    async fn with_backlog<T: Send + 'static>(
        &self,
        blocks: impl FnOnce(&Backlog) -> bool,
        work: impl FnOnce(&mut Backlog) -> T + Send + 'static,
    ) -> T {
        if !blocks(&lock(&self.backlog)) {
            return work(&mut lock(&self.backlog));
        }
        let backlog = Arc::clone(&self.backlog);
        blocking(move || work(&mut lock(&backlog))).await
    }
}

fn lock(backlog: &Mutex<Backlog>) -> MutexGuard<'_, Backlog> {
    backlog.lock()
}

async fn append(
    store: Store,
    batches: Vec<Arc<AuditBatch>>,
    durability: Durability,
) -> Result<(), StoreError> {
    store.append_audit_batches(batches, durability).await
}

/// A name that no other audit log has.
fn new_writer() -> String {
    ulid::Ulid::new().to_string()
}
