//! A log in memory that does something odd now and then.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use toolyard_core::{
    Answer, Approvals, BoxFuture, Journal as _, JournalError, JournalFuture, Lease, Question, QuestionKind,
    RawJson, RunId, RunLog as _, StepOutcome, StepState,
};

use super::wrapped_log::{Between, Wrapped};
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
pub(crate) type OddLog = Wrapped<Odd>;

/// What is odd about it.
#[derive(Debug)]
pub(crate) struct Odd {
    log: MemoryLog,
    oddity: Oddity,
    writes: AtomicUsize,
    late: Mutex<Option<(String, StepOutcome)>>,
}

impl OddLog {
    pub(crate) fn new(log: &MemoryLog, oddity: Oddity) -> Self {
        Self(Odd { log: log.clone(), oddity, writes: AtomicUsize::new(0), late: Mutex::default() })
    }
}

impl Odd {
    fn late(&self) -> Option<(String, StepOutcome)> {
        self.late.lock().unwrap().take()
    }
}

impl Between for Odd {
    type Log = MemoryLog;

    fn log(&self) -> &MemoryLog {
        &self.log
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
}

impl Approvals for OddLog {
    fn ask<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: QuestionKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<i64, String>> {
        if let Oddity::FailsToAsk { times } = self.0.oddity
            && self.0.writes.fetch_add(1, Ordering::SeqCst) < times
        {
            return Box::pin(std::future::ready(Err("the disk is full".to_owned())));
        }
        self.0.log.ask(run, step, kind, text)
    }

    fn answer<'a>(&'a self, id: i64, answer: Answer, by: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        self.0.log.answer(id, answer, by)
    }

    fn question(&self, id: i64) -> BoxFuture<'_, Result<Option<Question>, String>> {
        self.0.log.question(id)
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, String>> {
        self.0.log.waiting()
    }

    fn of_run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Question>, String>> {
        self.0.log.of_run(run)
    }
}
