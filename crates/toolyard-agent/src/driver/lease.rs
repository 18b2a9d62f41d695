//! [`LeaseGuard`]: gives a run's lease back when its driver is dropped.

use std::sync::Arc;

use toolyard_core::{JournalError, Lease, RunLog, RunState};

pub(super) struct LeaseGuard {
    log: Arc<dyn RunLog>,
    lease: Option<Lease>,
}

impl LeaseGuard {
    pub(super) fn new(log: &Arc<dyn RunLog>, lease: &Lease) -> Self {
        Self { log: Arc::clone(log), lease: Some(lease.clone()) }
    }

    pub(super) async fn release(&mut self, state: RunState) -> Result<(), JournalError> {
        match self.lease.take() {
            Some(lease) => self.log.release(&lease, state).await,
            None => Ok(()),
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let (Some(lease), Ok(runtime)) = (self.lease.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let log = Arc::clone(&self.log);
        runtime.spawn(async move {
            if let Err(error) = log.release(&lease, RunState::Open).await {
                tracing::debug!(run = %lease.run, %error, "failed to release the lease of an abandoned run");
            }
        });
    }
}
