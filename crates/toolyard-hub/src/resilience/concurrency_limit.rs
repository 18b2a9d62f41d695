//! Limits concurrent calls to one source or native tool, fairly between callers; exclusive calls run alone.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::resilience::fair_queue::{FairQueue, Ticket};

const MAX_CONCURRENT_CALLS: usize = 1_024;

/// The limit of one source or native tool. Waiting callers take turns, and no caller can occupy all slots.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit(Mutex<FairQueue<oneshot::Sender<()>>>);

/// Permission for one call, or its place in the queue; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    limit: &'a ConcurrencyLimit,
    ticket: Ticket,
}

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self(Mutex::new(FairQueue::new(MAX_CONCURRENT_CALLS)))
    }
}

impl ConcurrencyLimit {
    /// Permission to call without waiting, if available.
    pub(crate) fn try_acquire(&self, caller: &Arc<str>, exclusive: bool) -> Option<Slot<'_>> {
        let ticket = self.lock().try_start(caller, exclusive)?;
        Some(Slot { limit: self, ticket })
    }

    /// Waits for permission to call: the only call if `exclusive`, one of many otherwise.
    pub(crate) async fn acquire(&self, caller: &Arc<str>, exclusive: bool) -> Slot<'_> {
        let (sender, started) = oneshot::channel();
        let (ticket, admitted) = self.lock().enqueue(caller, exclusive, sender);
        // Exists before the first await: if this future is dropped, the slot or the place in the queue is given back.
        let slot = Slot { limit: self, ticket };
        notify(admitted);
        // The sender is dropped only after it has sent.
        let _ = started.await;
        slot
    }

    /// The numbers of running and of waiting calls.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        self.lock().lengths()
    }

    fn lock(&self) -> MutexGuard<'_, FairQueue<oneshot::Sender<()>>> {
        // Nothing panics between the changes of the queue.
        self.0.lock()
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let admitted = self.limit.lock().finish(self.ticket);
        notify(admitted);
    }
}

/// A receiver that is gone gives its slot back by itself.
fn notify(admitted: Vec<oneshot::Sender<()>>) {
    for sender in admitted {
        let _ = sender.send(());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn readers_run_together_and_a_writer_alone() {
        let (limit, caller) = (ConcurrencyLimit::default(), Arc::from("a"));
        let (one, two) = (limit.acquire(&caller, false).await, limit.acquire(&caller, false).await);
        assert!(timeout(SECOND, limit.acquire(&caller, true)).await.is_err());
        drop((one, two));
        let exclusive = limit.acquire(&caller, true).await;
        assert!(timeout(SECOND, limit.acquire(&caller, false)).await.is_err());
        drop(exclusive);
        assert!(limit.try_acquire(&caller, false).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_gives_up_leaves_the_queue() {
        let (limit, a, b) = (ConcurrencyLimit::default(), Arc::from("a"), Arc::from("b"));
        let exclusive = limit.acquire(&a, true).await;
        for _ in 0..10 {
            assert!(timeout(SECOND, limit.acquire(&b, true)).await.is_err());
        }
        drop(exclusive);
        assert!(limit.try_acquire(&a, true).is_some(), "nobody waits and nothing runs");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_dropped_after_its_admission_gives_the_slot_back() {
        let (limit, a, b) = (ConcurrencyLimit::default(), Arc::from("a"), Arc::from("b"));
        let exclusive = limit.acquire(&a, true).await;
        let mut waiting = Box::pin(limit.acquire(&b, true));
        assert!(timeout(SECOND, waiting.as_mut()).await.is_err());
        assert_eq!(limit.lengths(), (1, 1));
        // Admits the waiting call, which is never polled again.
        drop(exclusive);
        drop(waiting);
        assert_eq!(limit.lengths(), (0, 0));
        assert!(limit.try_acquire(&a, true).is_some());
    }
}
