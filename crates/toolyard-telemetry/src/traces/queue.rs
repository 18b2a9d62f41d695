//! [`OperationQueue`]: finished operations that wait for export.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use toolyard_core::telemetry::{Operation, OperationKind};

/// A bounded queue. A push never waits: what does not fit is dropped and counted.
#[derive(Debug)]
pub(super) struct OperationQueue {
    state: Mutex<State>,
    limits: QueueLimits,
    dropped: AtomicU64,
    has_batch: Notify,
}

/// How much may wait, and when the exporter is woken.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueLimits {
    pub(super) operations: usize,
    /// Arguments and results of calls, if they are captured.
    pub(super) content_bytes: usize,
    /// The exporter is woken at this length, and not for every operation.
    pub(super) batch: usize,
}

#[derive(Debug, Default)]
struct State {
    operations: VecDeque<Box<Operation>>,
    content_bytes: usize,
    is_closed: bool,
}

impl OperationQueue {
    pub(super) fn new(limits: QueueLimits) -> Self {
        Self { state: Mutex::default(), limits, dropped: AtomicU64::new(0), has_batch: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn push(&self, operation: Box<Operation>) {
        let mut state = self.lock();
        let content_bytes = state.content_bytes + content_bytes(&operation);
        let fits =
            state.operations.len() < self.limits.operations && content_bytes <= self.limits.content_bytes;
        if state.is_closed || !fits {
            drop(state);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.content_bytes = content_bytes;
        state.operations.push_back(operation);
        if state.operations.len() == self.limits.batch {
            drop(state);
            self.has_batch.notify_one();
        }
    }

    /// Removes up to `count` operations, the oldest first; `None` if there are none.
    #[expect(clippy::vec_box, reason = "operations are recorded in boxes, which are moved as they are")]
    pub(super) fn take(&self, count: usize) -> Option<Vec<Box<Operation>>> {
        let mut state = self.lock();
        let count = count.min(state.operations.len());
        let taken: Vec<Box<Operation>> = state.operations.drain(..count).collect();
        state.content_bytes -= taken.iter().map(|operation| content_bytes(operation)).sum::<usize>();
        (!taken.is_empty()).then_some(taken)
    }

    /// Waits until there are operations enough for an export.
    pub(super) async fn wait_for_batch(&self) {
        self.has_batch.notified().await;
    }

    /// How many operations were dropped since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// Drops what comes from now on, and what waits. Returns how many operations that were.
    pub(super) fn close(&self) -> usize {
        let mut state = self.lock();
        state.is_closed = true;
        state.content_bytes = 0;
        std::mem::take(&mut state.operations).len()
    }
}

/// What the operation holds of a call's arguments and result.
fn content_bytes(operation: &Operation) -> usize {
    match &operation.kind {
        OperationKind::ToolCall { content: Some(content), .. } => {
            content.arguments.as_ref().map_or(0, String::len) + content.result.len()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use toolyard_core::telemetry::CallContent;

    use super::*;

    const LIMITS: QueueLimits = QueueLimits { operations: 5, content_bytes: 100, batch: 3 };

    fn operation(kind: OperationKind) -> Box<Operation> {
        Box::new(Operation {
            kind,
            span: None,
            started_at: SystemTime::now(),
            duration: Duration::ZERO,
            error_type: None,
        })
    }

    #[tokio::test]
    async fn what_does_not_fit_is_counted_and_the_exporter_is_woken_for_a_batch() {
        let queue = OperationQueue::new(LIMITS);
        for _ in 0..8 {
            queue.push(operation(OperationKind::Planning { agent: "a".into() }));
        }
        tokio::time::timeout(Duration::from_secs(5), queue.wait_for_batch()).await.unwrap();
        assert_eq!(queue.take(4).map(|taken| taken.len()), Some(4));
        assert_eq!((queue.take(4).map(|taken| taken.len()), queue.take_dropped()), (Some(1), 3));
        assert_eq!((queue.take(4).map(|taken| taken.len()), queue.take_dropped()), (None, 0));
        queue.push(operation(OperationKind::Planning { agent: "a".into() }));
        assert_eq!(queue.close(), 1);
        queue.push(operation(OperationKind::Planning { agent: "a".into() }));
        assert_eq!((queue.take(4).map(|taken| taken.len()), queue.take_dropped()), (None, 1));
    }

    #[test]
    fn large_content_does_not_fill_the_memory() {
        let call = || {
            let content = CallContent { arguments: Some("{}".to_owned()), result: "x".repeat(48) };
            let content = Some(Box::new(content));
            operation(OperationKind::ToolCall {
                tool: "t".into(),
                source: None,
                attempts: 1,
                call: None,
                content,
            })
        };
        let queue = OperationQueue::new(LIMITS);
        (0..3).for_each(|_| queue.push(call()));
        assert_eq!(queue.take(9).map(|taken| taken.len()), Some(2));
        assert_eq!(queue.take_dropped(), 1);
        queue.push(call());
        assert_eq!(queue.take(9).map(|taken| taken.len()), Some(1), "the taken ones count no more");
    }
}
