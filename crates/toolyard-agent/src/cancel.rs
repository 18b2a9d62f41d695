//! A word that ends a run, or lays it down: whoever holds a copy can say it, whoever works on the run hears it.

use std::sync::Arc;

use tokio::sync::watch;

/// Says that a run shall end, or be laid down. Copies are the same token.
#[derive(Debug, Clone)]
pub struct CancelToken(Arc<watch::Sender<Word>>);

/// What was said. Whoever said more than before is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    GoOn,
    LayDown,
    Cancel,
}

impl Default for CancelToken {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Word::GoOn)))
    }
}

impl CancelToken {
    /// A token that nobody has used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends whatever listens to it.
    pub fn cancel(&self) {
        self.say(Word::Cancel);
    }

    /// Whether it was used to end something.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow() == Word::Cancel
    }

    /// Waits until it is used to end something.
    pub async fn cancelled(&self) {
        self.said(Word::Cancel).await;
    }

    /// Lays down whatever listens to it, to be gone on with by another process: nothing new is begun, and calls that are
    /// under way end.
    pub fn lay_down(&self) {
        self.say(Word::LayDown);
    }

    /// Whether nothing new is to be begun.
    pub fn is_used(&self) -> bool {
        *self.0.borrow() != Word::GoOn
    }

    /// Waits until nothing new is to be begun.
    pub async fn used(&self) {
        self.said(Word::LayDown).await;
    }

    fn say(&self, word: Word) {
        self.0.send_if_modified(|said| {
            let more = word > *said;
            *said = word.max(*said);
            more
        });
    }

    async fn said(&self, word: Word) {
        let mut changes = self.0.subscribe();
        // The sender lives in this very token.
        let _ = changes.wait_for(|said| *said >= word).await;
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
        token.lay_down();
        token.used().await;
        tokio::task::yield_now().await;
        assert!(token.is_used() && !token.is_cancelled() && !early.is_finished());
        token.cancel();
        early.await.unwrap();
        token.cancelled().await;
        token.lay_down();
        assert!(token.is_cancelled(), "what was ended is not only laid down");
    }
}
