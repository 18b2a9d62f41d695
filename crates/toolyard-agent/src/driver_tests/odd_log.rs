//! A log in memory that does something odd now and then.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use toolyard_core::{
    Answer, Approvals, Begun, BoxFuture, Intent, Journal, JournalError, JournalFuture, Lease, LoggedEvent,
    Question, QuestionKind, RawJson, Resolution, RunId, RunLog, RunRecord, RunState, StepOutcome, StepRecord,
    StepState,
};

use crate::MemoryLog;

/// What is odd about a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Oddity {
    #[default]
    None,
    /// What came of a call is written, and nobody is told.
    FinishesInSilence,
    /// What came of a call is written when somebody else writes about it.
    FinishesLate,
    /// These writes of transitions fail.
    FailsToAppend { from: usize, to: usize },
    /// These are said to have failed.
    SaysItFailed { from: usize, to: usize },
    /// Every write of transitions takes so long.
    AppendsSlowly(Duration),
    /// So often questions cannot be asked.
    FailsToAsk { times: usize },
}

/// A log with an oddity.
#[derive(Debug)]
pub(crate) struct OddLog {
    pub(crate) log: MemoryLog,
    pub(crate) oddity: Oddity,
    pub(crate) writes: AtomicUsize,
    late: Mutex<Option<(String, StepOutcome)>>,
}

impl OddLog {
    pub(crate) fn new(log: &MemoryLog, oddity: Oddity) -> Self {
        Self { log: log.clone(), oddity, writes: AtomicUsize::new(0), late: Mutex::default() }
    }

    fn late(&self) -> Option<(String, StepOutcome)> {
        self.late.lock().unwrap().take()
    }
}

impl Journal for OddLog {
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId> {
        self.log.create_run(kind, detail)
    }

    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease> {
        self.log.claim(run, owner, lease)
    }

    fn claim_next<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a str,
        lease: Duration,
    ) -> JournalFuture<'a, Option<Lease>> {
        self.log.claim_next(kind, owner, lease)
    }

    fn renew<'a>(&'a self, lease: &'a Lease, time: Duration) -> JournalFuture<'a, ()> {
        self.log.renew(lease, time)
    }

    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        self.log.release(lease, state)
    }

    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a Intent) -> JournalFuture<'a, Begun> {
        self.log.begin(lease, intent)
    }

    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a StepOutcome,
    ) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            let is_known = outcome.state == StepState::Done;
            if is_known && self.oddity == Oddity::FinishesLate {
                *self.late.lock().unwrap() = Some((step.to_owned(), outcome.clone()));
                return std::future::pending().await;
            }
            if let Some((step, outcome)) = self.late() {
                self.log.finish(lease, &step, &outcome).await?;
            }
            self.log.finish(lease, step, outcome).await?;
            if is_known && self.oddity == Oddity::FinishesInSilence {
                return std::future::pending().await;
            }
            Ok(())
        })
    }

    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord> {
        self.log.run(run)
    }

    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>> {
        self.log.runs(limit)
    }

    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        self.log.steps(run)
    }

    fn unknown(&self) -> JournalFuture<'_, Vec<StepRecord>> {
        self.log.unknown()
    }

    fn resolve<'a>(
        &'a self,
        run: &'a RunId,
        step: &'a str,
        resolution: Resolution,
        by: &'a str,
    ) -> JournalFuture<'a, ()> {
        self.log.resolve(run, step, resolution, by)
    }
}

impl RunLog for OddLog {
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            let write = self.writes.fetch_add(1, Ordering::SeqCst);
            let failed = || Err(JournalError::Failed("the disk is full".to_owned()));
            match self.oddity {
                Oddity::FailsToAppend { from, to } if (from..to).contains(&write) => failed(),
                Oddity::SaysItFailed { from, to } if (from..to).contains(&write) => {
                    self.log.append_all(lease, number, events).await?;
                    failed()
                }
                Oddity::AppendsSlowly(time) => {
                    self.log.append_all(lease, number, events).await?;
                    tokio::time::sleep(time).await;
                    Ok(())
                }
                _ => self.log.append_all(lease, number, events).await,
            }
        })
    }

    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>> {
        self.log.events(run, from)
    }
}

impl Approvals for OddLog {
    fn ask<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: QuestionKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<i64, String>> {
        if let Oddity::FailsToAsk { times } = self.oddity
            && self.writes.fetch_add(1, Ordering::SeqCst) < times
        {
            return Box::pin(std::future::ready(Err("the disk is full".to_owned())));
        }
        self.log.ask(run, step, kind, text)
    }

    fn answer<'a>(&'a self, id: i64, answer: Answer, by: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        self.log.answer(id, answer, by)
    }

    fn question(&self, id: i64) -> BoxFuture<'_, Result<Option<Question>, String>> {
        self.log.question(id)
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, String>> {
        self.log.waiting()
    }

    fn of_run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Question>, String>> {
        self.log.of_run(run)
    }
}
