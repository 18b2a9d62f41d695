//! Lets calls to one source, or to one native tool, run side by side, or alone where the source asks for it.

use tokio::sync::{Semaphore, SemaphorePermit};

/// More calls than this wait for one another at one gate.
const WIDTH: u32 = 1_024;

/// The gate of one source or of one native tool. Those who wait are let in in the order they came.
#[derive(Debug)]
pub(crate) struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(WIDTH as usize))
    }
}

impl Gate {
    /// A turn without waiting, if there is one.
    pub(crate) fn try_enter(&self, alone: bool) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire_many(places(alone)).ok()
    }

    /// Waits for a turn: the whole gate when `alone`, one place of it otherwise. The gate is never closed, so
    /// there is always a pass in the end.
    pub(crate) async fn enter(&self, alone: bool) -> Option<SemaphorePermit<'_>> {
        self.0.acquire_many(places(alone)).await.ok()
    }
}

fn places(alone: bool) -> u32 {
    if alone { WIDTH } else { 1 }
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
