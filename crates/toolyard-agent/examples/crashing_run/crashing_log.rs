//! A store that kills its process, as `kill -9` would, before or after its Nth write.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use toolyard_core::JournalFuture;
use toolyard_store::Store;

use crate::wrapped_log::{LogInterceptor, WrappedLog};

/// A store that kills its process.
#[derive(Debug)]
pub(crate) struct CrashingLog {
    store: Store,
    writes: AtomicUsize,
    before: Option<usize>,
    after: Option<usize>,
}

impl CrashingLog {
    /// `before:N`, `after:N`, or nothing.
    pub(crate) fn wrap(store: Store, kill: &str) -> WrappedLog<Self> {
        let at = |word: &str| kill.strip_prefix(word).and_then(|write| write.parse().ok());
        WrappedLog(Self { store, writes: AtomicUsize::new(0), before: at("before:"), after: at("after:") })
    }
}

impl LogInterceptor for CrashingLog {
    type Log = Store;

    fn log(&self) -> &Store {
        &self.store
    }

    fn write<'a, T: Send + 'a>(
        &'a self,
        make: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            let write = Some(self.writes.fetch_add(1, Ordering::SeqCst));
            if write == self.before {
                kill_self();
            }
            let outcome = make().await;
            if write == self.after {
                kill_self();
            }
            outcome
        })
    }
}

fn kill_self() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::thread::sleep(Duration::from_secs(60));
}
