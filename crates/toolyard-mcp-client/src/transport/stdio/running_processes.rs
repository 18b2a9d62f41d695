//! Counts the processes of a server that have not ended, also those that nobody waits for any more.

use std::sync::Arc;

use tokio::sync::watch;

/// The number of running processes. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningProcesses(Arc<watch::Sender<usize>>);

/// A process that counts as running for as long as this exists.
#[derive(Debug)]
pub(crate) struct RunningProcess(RunningProcesses);

impl RunningProcesses {
    pub(crate) fn add(&self) -> RunningProcess {
        self.0.send_modify(|count| *count += 1);
        RunningProcess(self.clone())
    }

    pub(crate) async fn wait_until_none(&self) {
        // The sender exists, so that waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
