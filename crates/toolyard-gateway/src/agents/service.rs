//! [`AgentService`]: the agents that clients can use, and the shutdown of their runs.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{active_runs::ActiveRuns, config::AgentServiceConfig};

/// Aborted runs release their leases in tasks of their own; this is how long they have for it.
const LEASE_RELEASE_TIME: Duration = Duration::from_millis(250);

/// The agents that clients can use. This process drives their runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AgentService(pub(super) Arc<ActiveRuns>);

impl AgentService {
    /// Creates the service.
    pub fn new(config: AgentServiceConfig) -> Self {
        Self(Arc::new(ActiveRuns::new(config)))
    }

    /// Starts no new runs, and releases the runs that no client waits for as soon as their calls have ended.
    pub fn stop_accepting(&self) {
        self.0.stop_accepting();
        self.0.release(|run| !run.is_observed);
    }

    /// Releases all runs and waits until `deadline` for calls in flight; runs that are still active then are aborted, and
    /// can be resumed by another process. Returns how many runs were active.
    pub async fn shutdown(&self, deadline: Instant) -> usize {
        self.0.stop_driving();
        let active = self.0.release(|_| true);
        // Runs that are being started spawn further tasks meanwhile.
        let mut tasks = JoinSet::new();
        let ended = timeout_at(deadline, async {
            loop {
                tasks = self.0.take_tasks();
                if tasks.is_empty() {
                    break;
                }
                while tasks.join_next().await.is_some() {}
            }
        });
        if ended.await.is_err() {
            tasks.shutdown().await;
            self.0.take_tasks().shutdown().await;
            tokio::time::sleep(LEASE_RELEASE_TIME).await;
        }
        active
    }
}
