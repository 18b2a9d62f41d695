//! [`CancelToken`]: cancels or releases a run while it is driven, or has it look for decisions.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Tells a driver to cancel its run, or to release it for another process. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    stopping: CancellationToken,
    cancelled: CancellationToken,
    decided: Arc<Notify>,
}

impl CancelToken {
    /// A token that was not used yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the run.
    pub fn cancel(&self) {
        self.cancelled.cancel();
        self.stopping.cancel();
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits for [`cancel`](Self::cancel).
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Releases the run so that another process can resume it: nothing new is started, and calls in flight end.
    pub fn release(&self) {
        self.stopping.cancel();
    }

    /// Has the driver read decisions from the store now rather than at its next heartbeat: approvals, and requests to cancel the
    /// run. Kept until the driver does so.
    pub fn check_decisions(&self) {
        self.decided.notify_one();
    }

    /// Waits for [`check_decisions`](Self::check_decisions).
    pub(crate) async fn decided(&self) {
        self.decided.notified().await;
    }

    /// Whether nothing new may be started: the run is cancelled or released.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Waits until nothing new may be started.
    pub async fn stopping(&self) {
        self.stopping.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_clone_observes_release_and_cancel() {
        let token = CancelToken::new();
        let copy = token.clone();
        let early = tokio::spawn(async move { copy.cancelled().await });
        tokio::task::yield_now().await;
        assert!(!token.is_cancelled() && !early.is_finished());
        token.release();
        token.stopping().await;
        tokio::task::yield_now().await;
        assert!(token.is_stopping() && !token.is_cancelled() && !early.is_finished());
        token.cancel();
        early.await.unwrap();
        token.cancelled().await;
        token.release();
        assert!(token.is_cancelled(), "release does not undo cancel");
    }
}
