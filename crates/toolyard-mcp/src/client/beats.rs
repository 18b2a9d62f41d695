//! Signs of life of requests under way: each one starts the wait for the next anew.

use std::{
    collections::HashMap,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::sleep};

/// The requests of one connection that may show signs of life.
#[derive(Debug, Default)]
pub(super) struct Beats(Mutex<HashMap<u64, Arc<Notify>>>);

/// The signs of life of one request.
#[derive(Debug)]
pub(super) struct Beat(Arc<Notify>);

impl Beats {
    /// Follows one request.
    pub(super) fn follow(&self, id: u64) -> Beat {
        let beat = Arc::new(Notify::new());
        self.all().insert(id, Arc::clone(&beat));
        Beat(beat)
    }

    /// The request is over.
    pub(super) fn forget(&self, id: u64) {
        self.all().remove(&id);
    }

    /// The request showed a sign of life.
    pub(super) fn beat(&self, id: u64) {
        if let Some(beat) = self.all().get(&id) {
            beat.notify_one();
        }
    }

    /// How many requests are followed.
    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beat {
    /// What `work` brings, unless there is no sign of life for `limit`.
    pub(super) async fn unless_silent<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return Some(outcome),
                () = self.0.notified() => {}
                () = sleep(limit) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_start_the_wait_anew() {
        let beats = Arc::new(Beats::default());
        let beat = beats.follow(1);
        let heart = Arc::clone(&beats);
        tokio::spawn(async move {
            for _ in 0..5 {
                sleep(Duration::from_secs(8)).await;
                heart.beat(1);
            }
        });
        let started = Instant::now();
        assert_eq!(beat.unless_silent(Duration::from_secs(10), pending::<()>()).await, None);
        assert_eq!(started.elapsed(), Duration::from_secs(50));
    }
}
