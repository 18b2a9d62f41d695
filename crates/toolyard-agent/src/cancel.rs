//! A word that ends a run: whoever holds a copy can say it, whoever works on the run hears it.

use std::sync::Arc;

use tokio::sync::watch;

/// Says that a run shall end. Copies are the same token.
#[derive(Debug, Clone)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl Default for CancelToken {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl CancelToken {
    /// A token that nobody has used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends whatever listens to it.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was used.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is used.
    pub async fn cancelled(&self) {
        let mut changes = self.0.subscribe();
        // The sender lives in this very token.
        let _ = changes.wait_for(|cancelled| *cancelled).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_copy_hears_it_whenever_it_listens() {
        let token = CancelToken::new();
        let copy = token.clone();
        let early = tokio::spawn(async move { copy.cancelled().await });
        tokio::task::yield_now().await;
        assert!(!token.is_cancelled() && !early.is_finished());
        token.cancel();
        early.await.unwrap();
        token.cancelled().await;
        assert!(token.is_cancelled());
    }
}
