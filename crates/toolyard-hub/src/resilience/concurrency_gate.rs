//! Limits concurrent calls to one source or native tool; exclusive calls run alone.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Concurrent calls per gate.
const MAX_CONCURRENT_CALLS: u32 = 1_024;

/// Concurrency gate of one source or native tool; waiting calls are admitted in order.
#[derive(Debug)]
pub(crate) struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(MAX_CONCURRENT_CALLS as usize))
    }
}

impl Gate {
    /// A permit without waiting, if available.
    pub(crate) fn try_enter(&self, alone: bool) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire_many(permits_for(alone)).ok()
    }

    /// Waits for a permit: the whole gate if `alone`, one slot otherwise. The semaphore is never closed, so this always
    /// succeeds in the end.
    pub(crate) async fn enter(&self, alone: bool) -> Option<SemaphorePermit<'_>> {
        self.0.acquire_many(permits_for(alone)).await.ok()
    }
}

fn permits_for(alone: bool) -> u32 {
    if alone { MAX_CONCURRENT_CALLS } else { 1 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readers_run_together_and_a_writer_alone() {
        let gate = Gate::default();
        let (one, two) = (gate.enter(false).await, gate.enter(false).await);
        assert!(tokio::time::timeout(Duration::from_secs(1), gate.enter(true)).await.is_err());
        drop((one, two));
        let alone = gate.enter(true).await;
        assert!(tokio::time::timeout(Duration::from_secs(1), gate.enter(false)).await.is_err());
        drop(alone);
        assert!(gate.enter(false).await.is_some());
    }
}
