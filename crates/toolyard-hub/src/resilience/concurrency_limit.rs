//! Limits concurrent calls to one source or native tool; exclusive calls run alone.

use tokio::sync::{Semaphore, SemaphorePermit};

const MAX_CONCURRENT_CALLS: u32 = 1_024;

/// The limit of one source or native tool; waiting calls are admitted in order.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit(Semaphore);

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self(Semaphore::new(MAX_CONCURRENT_CALLS as usize))
    }
}

impl ConcurrencyLimit {
    /// Permission to call without waiting, if available.
    pub(crate) fn try_acquire(&self, exclusive: bool) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire_many(permits_for(exclusive)).ok()
    }

    /// Waits for permission to call: the only call if `exclusive`, one of many otherwise. Always succeeds in the end, because
    /// the semaphore is never closed.
    pub(crate) async fn acquire(&self, exclusive: bool) -> Option<SemaphorePermit<'_>> {
        self.0.acquire_many(permits_for(exclusive)).await.ok()
    }
}

fn permits_for(exclusive: bool) -> u32 {
    if exclusive { MAX_CONCURRENT_CALLS } else { 1 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readers_run_together_and_a_writer_alone() {
        let limit = ConcurrencyLimit::default();
        let (one, two) = (limit.acquire(false).await, limit.acquire(false).await);
        assert!(tokio::time::timeout(Duration::from_secs(1), limit.acquire(true)).await.is_err());
        drop((one, two));
        let exclusive = limit.acquire(true).await;
        assert!(tokio::time::timeout(Duration::from_secs(1), limit.acquire(false)).await.is_err());
        drop(exclusive);
        assert!(limit.acquire(false).await.is_some());
    }
}
