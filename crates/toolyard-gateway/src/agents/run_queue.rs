//! [`RunQueue`]: background runs that wait for a process with capacity. The store knows them too; the queue only saves looking.

use std::collections::{HashSet, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use toolyard_core::RunId;

/// Further runs are found when the store is polled.
const MAX_QUEUED_RUNS: usize = 10_000;

/// Runs to be started, oldest first, each once.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    waiting: Mutex<WaitingRuns>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct WaitingRuns {
    order: VecDeque<RunId>,
    known: HashSet<RunId>,
}

impl RunQueue {
    /// Adds a run, unless it waits already.
    pub(super) fn push(&self, run: RunId) {
        let mut waiting = self.lock();
        if waiting.order.len() < MAX_QUEUED_RUNS && waiting.known.insert(run.clone()) {
            waiting.order.push_back(run);
        }
        drop(waiting);
        self.wake();
    }

    /// Takes the run that waits longest.
    pub(super) fn pop(&self) -> Option<RunId> {
        let mut waiting = self.lock();
        let run = waiting.order.pop_front()?;
        waiting.known.remove(&run);
        Some(run)
    }

    /// Has the queue looked at: a run was added, or another one ended.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Completes when the queue is to be looked at.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, WaitingRuns> {
        self.waiting.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_leave_the_queue_once_and_in_the_order_in_which_they_came() {
        let queue = RunQueue::default();
        for run in ["a", "b", "a", "c"] {
            queue.push(run.into());
        }
        let taken: Vec<String> = std::iter::from_fn(|| queue.pop()).map(|run| run.to_string()).collect();
        assert_eq!(taken, ["a", "b", "c"]);
        queue.push("a".into());
        assert_eq!(queue.pop(), Some("a".into()), "a run may wait again");
    }

    #[test]
    fn a_full_queue_refuses_runs() {
        let queue = RunQueue::default();
        (0..=MAX_QUEUED_RUNS).for_each(|number| queue.push(number.to_string().as_str().into()));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), MAX_QUEUED_RUNS);
    }
}
