//! A log in memory with injected faults.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use toolyard_core::{
    ApprovalId, ApprovalKind, ApprovalOutcome, ApprovalRecord, Approvals, BoxFuture, FinishedStep,
    Journal as _, JournalError, JournalFuture, Lease, RawJson, RunId, RunLog as _, RunState, StepState,
    StorageError,
};

use super::wrapped_log::{LogInterceptor, WrappedLog};
use crate::MemoryRunLog;

/// An injected fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// `finish` writes the outcome and never returns.
    FinishNeverReturns,
    /// `finish` writes the outcome only when the next `finish` is called.
    FinishIsDelayed,
    /// These appends fail.
    AppendFails { from: usize, to: usize },
    /// These appends succeed and report a failure.
    AppendReportsFailure { from: usize, to: usize },
    /// Every append takes this long.
    AppendIsSlow(Duration),
    /// A lease is released only after this time.
    ReleaseIsSlow(Duration),
    /// This many approval requests fail.
    ApprovalRequestFails { times: usize },
}

/// A log with a fault.
pub(crate) type FlakyLog = WrappedLog<FaultyStore>;

/// The log behind the fault.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    log: MemoryRunLog,
    fault: Fault,
    writes: AtomicUsize,
    delayed: Mutex<Option<(String, FinishedStep)>>,
}

impl FlakyLog {
    pub(crate) fn new(log: &MemoryRunLog, fault: Fault) -> Self {
        Self(FaultyStore { log: log.clone(), fault, writes: AtomicUsize::new(0), delayed: Mutex::default() })
    }
}

impl FaultyStore {
    fn take_delayed(&self) -> Option<(String, FinishedStep)> {
        self.delayed.lock().take()
    }
}

impl LogInterceptor for FaultyStore {
    type Log = MemoryRunLog;

    fn log(&self) -> &MemoryRunLog {
        &self.log
    }

    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            if let Fault::ReleaseIsSlow(time) = self.fault {
                tokio::time::sleep(time).await;
            }
            self.log.release(lease, state).await
        })
    }

    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a FinishedStep,
    ) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            let is_known = outcome.state == StepState::Done;
            if is_known && self.fault == Fault::FinishIsDelayed {
                *self.delayed.lock() = Some((step.to_owned(), outcome.clone()));
                return std::future::pending().await;
            }
            if let Some((step, outcome)) = self.take_delayed() {
                self.log.finish(lease, &step, &outcome).await?;
            }
            self.log.finish(lease, step, outcome).await?;
            if is_known && self.fault == Fault::FinishNeverReturns {
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
            let storage_error = || Err(JournalError::Storage("the disk is full".to_owned()));
            match self.fault {
                Fault::AppendFails { from, to } if (from..to).contains(&write) => storage_error(),
                Fault::AppendReportsFailure { from, to } if (from..to).contains(&write) => {
                    self.log.append_all(lease, number, events).await?;
                    storage_error()
                }
                Fault::AppendIsSlow(time) => {
                    self.log.append_all(lease, number, events).await?;
                    tokio::time::sleep(time).await;
                    Ok(())
                }
                _ => self.log.append_all(lease, number, events).await,
            }
        })
    }
}

impl Approvals for FlakyLog {
    fn request_approval<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: ApprovalKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<ApprovalId, StorageError>> {
        if let Fault::ApprovalRequestFails { times } = self.0.fault
            && self.0.writes.fetch_add(1, Ordering::SeqCst) < times
        {
            return Box::pin(std::future::ready(Err(StorageError::new("the disk is full"))));
        }
        self.0.log.request_approval(run, step, kind, text)
    }

    fn decide<'a>(
        &'a self,
        id: ApprovalId,
        outcome: ApprovalOutcome,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.0.log.decide(id, outcome, by)
    }

    fn approval(&self, id: ApprovalId) -> BoxFuture<'_, Result<Option<ApprovalRecord>, StorageError>> {
        self.0.log.approval(id)
    }

    fn pending_approvals(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, StorageError>> {
        self.0.log.pending_approvals()
    }

    fn approvals_of_run<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<ApprovalRecord>, StorageError>> {
        self.0.log.approvals_of_run(run)
    }
}
