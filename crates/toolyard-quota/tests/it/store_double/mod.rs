//! A store in memory with the clock of the test, which can fail in several ways.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, time::sleep};
use toolyard_core::{
    BoxFuture, BudgetCharge, BudgetTake, CallQuota as _, PermitHold, QuotaBudgets, QuotaCall, QuotaExceeded,
    QuotaPermit, QuotaSubject, QuotaTool, SourceId, StorageError, WindowLimit,
};
use toolyard_quota::{MemoryBudgets, QuotaRule, Quotas};

/// How the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It works.
    None,
    /// It changes nothing and says so.
    Refuses,
    /// It makes the change, and reports a failure whose outcome is unknown.
    LosesAnswers,
    /// It answers nothing until the fault ends, and then makes all changes, also those that nobody waits for.
    Hangs,
}

/// A store in memory, each request of which takes a while.
#[derive(Debug)]
pub(crate) struct FaultyBudgets {
    latency: Duration,
    fault: watch::Sender<Fault>,
    pub(crate) requests: AtomicUsize,
    budgets: Arc<MemoryBudgets>,
}

impl FaultyBudgets {
    pub(crate) fn new(latency: Duration) -> Arc<Self> {
        Arc::new(Self {
            latency,
            fault: watch::Sender::new(Fault::None),
            requests: AtomicUsize::new(0),
            budgets: Arc::default(),
        })
    }

    pub(crate) fn set_fault(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// What is used of all budgets of a meter, in their latest windows.
    pub(crate) fn used(&self, meter: &str) -> u64 {
        self.budgets.used(meter)
    }

    /// How many permits are held.
    pub(crate) fn held(&self) -> u64 {
        self.budgets.held()
    }

    /// Makes a change as the present fault says.
    async fn serve<T: Send + 'static>(
        &self,
        request: impl FnOnce(Arc<MemoryBudgets>) -> BoxFuture<'static, Result<T, StorageError>> + Send + 'static,
    ) -> Result<T, StorageError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        sleep(self.latency / 2).await;
        let (fault, budgets) = (*self.fault.borrow(), Arc::clone(&self.budgets));
        let answer = match fault {
            Fault::Refuses => return Err(StorageError::new("connection refused")),
            Fault::None | Fault::LosesAnswers => request(budgets).await,
            Fault::Hangs => {
                let mut faults = self.fault.subscribe();
                let late = tokio::spawn(async move {
                    let _ = faults.wait_for(|fault| *fault != Fault::Hangs).await;
                    request(budgets).await
                });
                late.await.unwrap()
            }
        };
        sleep(self.latency / 2).await;
        match fault {
            Fault::LosesAnswers => Err(StorageError::with_unknown_outcome("connection lost")),
            _ => answer,
        }
    }
}

impl QuotaBudgets for FaultyBudgets {
    fn take<'a>(&'a self, takes: &'a [BudgetTake]) -> BoxFuture<'a, Result<Vec<Duration>, StorageError>> {
        let takes = takes.to_vec();
        Box::pin(self.serve(move |budgets| Box::pin(async move { budgets.take(&takes).await })))
    }

    fn charge<'a>(&'a self, charge: &'a BudgetCharge) -> BoxFuture<'a, Result<Duration, StorageError>> {
        let charge = charge.clone();
        Box::pin(self.serve(move |budgets| Box::pin(async move { budgets.charge(&charge).await })))
    }

    fn hold_permits<'a>(&'a self, hold: &'a PermitHold) -> BoxFuture<'a, Result<u64, StorageError>> {
        let hold = hold.clone();
        Box::pin(self.serve(move |budgets| Box::pin(async move { budgets.hold_permits(&hold).await })))
    }

    fn purge_budgets(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

pub(crate) async fn call(quotas: &Quotas) -> Result<QuotaPermit, Box<QuotaExceeded>> {
    call_tool(quotas, "search").await
}

pub(crate) async fn call_tool(quotas: &Quotas, name: &str) -> Result<QuotaPermit, Box<QuotaExceeded>> {
    let source = SourceId::from("web");
    let tools = [QuotaTool { name, source: &source }];
    quotas.take_call(&QuotaCall { subject: QuotaSubject::default(), tools: &tools }).await
}

pub(crate) fn calls_rule(limit: u64, window_millis: u64) -> QuotaRule {
    let calls = Some(WindowLimit { limit, window_millis });
    QuotaRule { name: "all".into(), calls, ..QuotaRule::default() }
}
