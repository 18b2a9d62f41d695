//! [`OperationQueue`]: finished operations that wait for export.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;
use toolyard_core::telemetry::Operation;

/// A bounded queue. A push never waits: what does not fit is dropped and counted.
#[derive(Debug)]
pub(super) struct OperationQueue {
    operations: Mutex<Vec<Operation>>,
    capacity: usize,
    /// The exporter is woken at this length, and not for every operation.
    batch: usize,
    dropped: AtomicU64,
    has_batch: Notify,
}

impl OperationQueue {
    pub(super) fn new(capacity: usize, batch: usize) -> Self {
        Self {
            operations: Mutex::default(),
            capacity,
            batch,
            dropped: AtomicU64::new(0),
            has_batch: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Operation>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, operation: Operation) {
        let mut operations = self.lock();
        if operations.len() >= self.capacity {
            drop(operations);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        operations.push(operation);
        if operations.len() == self.batch {
            drop(operations);
            self.has_batch.notify_one();
        }
    }

    /// Removes all operations.
    pub(super) fn take(&self) -> Vec<Operation> {
        let mut operations = self.lock();
        // The same capacity again: under load, the queue does not grow anew for every batch.
        let next = Vec::with_capacity(operations.len().min(self.batch * 2));
        std::mem::replace(&mut *operations, next)
    }

    /// Waits until there are operations enough for an export.
    pub(super) async fn wait_for_batch(&self) {
        self.has_batch.notified().await;
    }

    /// How many operations were dropped since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use toolyard_core::telemetry::OperationKind;

    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_is_counted_and_the_exporter_is_woken_for_a_batch() {
        let operation = Operation {
            kind: OperationKind::Planning { agent: "a".into() },
            span: None,
            started_at: SystemTime::now(),
            duration: Duration::ZERO,
            error_type: None,
        };
        let queue = OperationQueue::new(5, 3);
        for _ in 0..8 {
            queue.push(operation.clone());
        }
        tokio::time::timeout(Duration::from_secs(5), queue.wait_for_batch()).await.unwrap();
        assert_eq!((queue.take().len(), queue.take_dropped()), (5, 3));
        assert_eq!((queue.take().len(), queue.take_dropped()), (0, 0));
    }
}
