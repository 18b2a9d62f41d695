//! A log that kills its process, as `kill -9` would, before or after its Nth write.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use toolyard_core::{
    Begun, Intent, Journal, JournalFuture, Lease, LoggedEvent, RawJson, Resolution, RunId, RunLog, RunRecord,
    RunState, StepOutcome, StepRecord,
};
use toolyard_store::Store;

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
    pub(crate) fn new(store: Store, kill: &str) -> Self {
        let at = |word: &str| kill.strip_prefix(word).and_then(|number| number.parse().ok());
        Self { store, writes: AtomicUsize::new(0), before: at("before:"), after: at("after:") }
    }

    async fn write<T>(&self, work: JournalFuture<'_, T>) -> Result<T, toolyard_core::JournalError> {
        let number = Some(self.writes.fetch_add(1, Ordering::SeqCst));
        if number == self.before {
            die();
        }
        let outcome = work.await;
        if number == self.after {
            die();
        }
        outcome
    }
}

fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::thread::sleep(Duration::from_secs(60));
}

impl Journal for Mortal {
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId> {
        self.store.create_run(kind, detail)
    }

    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease> {
        self.store.claim(run, owner, lease)
    }

    fn claim_next<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a str,
        lease: Duration,
    ) -> JournalFuture<'a, Option<Lease>> {
        self.store.claim_next(kind, owner, lease)
    }

    fn renew<'a>(&'a self, lease: &'a Lease, time: Duration) -> JournalFuture<'a, ()> {
        self.store.renew(lease, time)
    }

    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        Box::pin(self.write(self.store.release(lease, state)))
    }

    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a Intent) -> JournalFuture<'a, Begun> {
        Box::pin(self.write(self.store.begin(lease, intent)))
    }

    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a StepOutcome,
    ) -> JournalFuture<'a, ()> {
        Box::pin(self.write(self.store.finish(lease, step, outcome)))
    }

    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord> {
        self.store.run(run)
    }

    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>> {
        self.store.runs(limit)
    }

    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        self.store.steps(run)
    }

    fn step<'a>(&'a self, run: &'a RunId, step: &'a str) -> JournalFuture<'a, Option<StepRecord>> {
        self.store.step(run, step)
    }

    fn unknown(&self) -> JournalFuture<'_, Vec<StepRecord>> {
        self.store.unknown()
    }

    fn resolve<'a>(
        &'a self,
        run: &'a RunId,
        step: &'a str,
        resolution: Resolution,
        by: &'a str,
    ) -> JournalFuture<'a, ()> {
        self.store.resolve(run, step, resolution, by)
    }
}

impl RunLog for Mortal {
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()> {
        Box::pin(self.write(self.store.append_all(lease, number, events)))
    }

    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>> {
        self.store.events(run, from)
    }
}
