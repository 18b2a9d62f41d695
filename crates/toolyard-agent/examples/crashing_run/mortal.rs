//! A log that kills its process, as `kill -9` would, before or after its Nth write.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use toolyard_core::JournalFuture;
use toolyard_store::Store;

use crate::wrapped_log::{Between, Wrapped};

/// A store with a fate.
#[derive(Debug)]
pub(crate) struct Mortal {
    store: Store,
    writes: AtomicUsize,
    before: Option<usize>,
    after: Option<usize>,
}

impl Mortal {
    /// `before:N`, `after:N`, or nothing.
    pub(crate) fn wrap(store: Store, kill: &str) -> Wrapped<Self> {
        let at = |word: &str| kill.strip_prefix(word).and_then(|number| number.parse().ok());
        Wrapped(Self { store, writes: AtomicUsize::new(0), before: at("before:"), after: at("after:") })
    }
}

impl Between for Mortal {
    type Log = Store;

    fn log(&self) -> &Store {
        &self.store
    }

    fn write<'a, T: Send + 'a>(
        &'a self,
        make: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            let number = Some(self.writes.fetch_add(1, Ordering::SeqCst));
            if number == self.before {
                die();
            }
            let outcome = make().await;
            if number == self.after {
                die();
            }
            outcome
        })
    }
}

fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::thread::sleep(Duration::from_secs(60));
}
