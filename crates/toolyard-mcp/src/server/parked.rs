//! Calls that wait here until their callers come back with answers: not too many, and not for too long.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::sync::Notify;

use super::work::{Step, Work};

/// All calls that wait.
#[derive(Debug, Default)]
pub(super) struct Parked {
    waiting: Mutex<HashMap<u64, Arc<Place>>>,
}

/// Where one call waits.
#[derive(Debug)]
struct Place {
    work: Mutex<Option<Work>>,
    left: Notify,
}

impl Parked {
    /// Lets a call wait: the number under which it can be taken again, or none if too many wait already.
    pub(super) fn park(self: &Arc<Self>, work: Work, at_most: usize, time: Duration) -> Option<u64> {
        let place = Arc::new(Place { work: Mutex::new(Some(work.grounded())), left: Notify::new() });
        let number = {
            let mut waiting = self.lock();
            if waiting.len() >= at_most {
                return None;
            }
            let number = loop {
                let number = fastrand::u64(..);
                if !waiting.contains_key(&number) {
                    break number;
                }
            };
            waiting.insert(number, Arc::clone(&place));
            number
        };
        let parked = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = place.left.notified() => {}
                () = tokio::time::sleep(time) => {}
                () = async {
                    place.live().await;
                    std::future::pending::<()>().await;
                } => {}
            }
            parked.lock().remove(&number);
        });
        Some(number)
    }

    /// Takes a call that waits.
    pub(super) fn take(&self, number: u64) -> Option<Work> {
        let place = self.lock().remove(&number)?;
        let work = place.lock().take();
        place.left.notify_one();
        work
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Place>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// What waits may still come to its end by itself, when its deadline passes for instance. The outcome is kept.
    async fn live(&self) {
        poll_fn(|context| {
            let mut place = self.lock();
            let Some(work) = place.as_mut() else { return Poll::Ready(()) };
            loop {
                match work.rest(context) {
                    // Nobody listens at this moment.
                    Poll::Ready(Step::Said(_) | Step::Asks) => {}
                    Poll::Ready(Step::Ended(outcome)) => {
                        work.keep(outcome);
                        return Poll::Ready(());
                    }
                    Poll::Ready(Step::Cancelled) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Work>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
