//! A run log whose writes can be intercepted; reads are forwarded.

use std::time::Duration;

use toolyard_core::{
    FinishedStep, Journal, JournalFuture, Lease, LoggedEvent, RawJson, Resolution, RunId, RunLog, RunRecord,
    RunState, StepIntent, StepRecord, StepStart,
};

/// Intercepts the writes of a log.
pub(crate) trait LogInterceptor: Send + Sync {
    type Log: RunLog;

    fn log(&self) -> &Self::Log;

    /// Awaited before runs are created or read.
    fn admit(&self) -> JournalFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Intercepts any write; `perform` makes it.
    fn write<'a, T: Send + 'a>(
        &'a self,
        perform: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        perform()
    }

    /// Intercepts the release of a lease.
    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        self.write(move || self.log().release(lease, state))
    }

    /// Intercepts the write of a call's outcome.
    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a FinishedStep,
    ) -> JournalFuture<'a, ()> {
        self.write(move || self.log().finish(lease, step, outcome))
    }

    /// Intercepts the write of events.
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()> {
        self.write(move || self.log().append_all(lease, number, events))
    }
}

/// A log with an interceptor.
#[derive(Debug)]
pub(crate) struct WrappedLog<B>(pub(crate) B);

impl<B: LogInterceptor> Journal for WrappedLog<B> {
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId> {
        Box::pin(async move {
            self.0.admit().await?;
            self.0.log().create_run(kind, detail).await
        })
    }

    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease> {
        self.0.log().claim(run, owner, lease)
    }

    fn claim_next<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a str,
        lease: Duration,
    ) -> JournalFuture<'a, Option<Lease>> {
        self.0.log().claim_next(kind, owner, lease)
    }

    fn renew<'a>(&'a self, lease: &'a Lease, time: Duration) -> JournalFuture<'a, ()> {
        self.0.log().renew(lease, time)
    }

    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        self.0.release(lease, state)
    }

    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a StepIntent) -> JournalFuture<'a, StepStart> {
        self.0.write(move || self.0.log().begin(lease, intent))
    }

    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a FinishedStep,
    ) -> JournalFuture<'a, ()> {
        self.0.finish(lease, step, outcome)
    }

    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord> {
        Box::pin(async move {
            self.0.admit().await?;
            self.0.log().run(run).await
        })
    }

    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(async move {
            self.0.admit().await?;
            self.0.log().runs(limit).await
        })
    }

    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        self.0.log().steps(run)
    }

    fn step<'a>(&'a self, run: &'a RunId, step: &'a str) -> JournalFuture<'a, Option<StepRecord>> {
        self.0.log().step(run, step)
    }

    fn unknown_steps(&self) -> JournalFuture<'_, Vec<StepRecord>> {
        self.0.log().unknown_steps()
    }

    fn resolve<'a>(
        &'a self,
        run: &'a RunId,
        step: &'a str,
        resolution: Resolution,
        by: &'a str,
    ) -> JournalFuture<'a, ()> {
        self.0.log().resolve(run, step, resolution, by)
    }
}

impl<B: LogInterceptor> RunLog for WrappedLog<B> {
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()> {
        self.0.append_all(lease, number, events)
    }

    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>> {
        Box::pin(async move {
            self.0.admit().await?;
            self.0.log().events(run, from).await
        })
    }
}
