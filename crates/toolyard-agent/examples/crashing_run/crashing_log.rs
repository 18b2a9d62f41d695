//! A store that kills its process, as `kill -9` would, before or after its Nth write.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use toolyard_core::JournalFuture;
use toolyard_store::Store;

use crate::wrapped_log::{LogInterceptor, WrappedLog};

/// Counts the writes of a store and kills the process at one of them.
#[derive(Debug)]
pub(crate) struct CrashingLog {
    store: Store,
    writes: AtomicUsize,
    kill_before: Option<usize>,
    kill_after: Option<usize>,
}

impl CrashingLog {
    /// `before:N`, `after:N`, or nothing.
    pub(crate) fn wrap(store: Store, kill: &str) -> WrappedLog<Self> {
        let write_after = |prefix: &str| kill.strip_prefix(prefix).and_then(|write| write.parse().ok());
        WrappedLog(Self {
            store,
            writes: AtomicUsize::new(0),
            kill_before: write_after("before:"),
            kill_after: write_after("after:"),
        })
    }
}

impl LogInterceptor for CrashingLog {
    type Log = Store;

    fn log(&self) -> &Store {
        &self.store
    }

    fn write<'a, T: Send + 'a>(
        &'a self,
        perform: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            let write = Some(self.writes.fetch_add(1, Ordering::SeqCst));
            if write == self.kill_before {
                kill_self();
            }
            let outcome = perform().await;
            if write == self.kill_after {
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
