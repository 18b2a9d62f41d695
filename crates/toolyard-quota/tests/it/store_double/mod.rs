//! A store in memory with the clock of the test, which can fail in several ways.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use toolyard_core::{
    BoxFuture, BudgetChange, BudgetState, CallQuota as _, ContentHash, PermitHold, QuotaBudgets, QuotaCall,
    QuotaExceeded, QuotaPermit, QuotaSubject, QuotaTool, SourceId, StorageError, StoredBudget, StoredPermits,
    WindowLimit, WindowUse,
};
use toolyard_quota::{QuotaRule, Quotas};

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
pub(crate) struct MemoryBudgets {
    latency: Duration,
    fault: watch::Sender<Fault>,
    pub(crate) requests: AtomicUsize,
    data: Arc<Data>,
}

#[derive(Debug)]
struct Data {
    started: Instant,
    budgets: Mutex<HashMap<ContentHash, StoredUse>>,
    permits: Mutex<HeldPermits>,
}

/// How many permits each holder has until when.
type HeldPermits = HashMap<(ContentHash, Arc<str>), (u64, Instant)>;

#[derive(Debug, Default)]
struct StoredUse {
    meter: &'static str,
    used: WindowUse,
    /// The number, slot and grant of the latest change of each holder.
    latest: HashMap<Arc<str>, (u64, u64, u64)>,
}

impl MemoryBudgets {
    pub(crate) fn new(latency: Duration) -> Arc<Self> {
        Arc::new(Self {
            latency,
            fault: watch::Sender::new(Fault::None),
            requests: AtomicUsize::new(0),
            data: Arc::new(Data {
                started: Instant::now(),
                budgets: Mutex::default(),
                permits: Mutex::default(),
            }),
        })
    }

    pub(crate) fn set_fault(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// What is used of all budgets of a meter, if their windows are longer than the test.
    pub(crate) fn used(&self, meter: &str) -> u64 {
        let ever = WindowLimit { limit: u64::MAX, window_millis: u64::MAX };
        let budgets = self.data.budgets.lock().unwrap();
        budgets
            .values()
            .filter(|stored| stored.meter == meter)
            .map(|stored| stored.used.clone().used(ever, 0))
            .sum()
    }

    /// How many permits are held.
    pub(crate) fn held(&self) -> u64 {
        let (permits, now) = (self.data.permits.lock().unwrap(), Instant::now());
        permits.values().filter(|(_, until)| *until >= now).map(|(held, _)| held).sum()
    }

    /// Makes a change as the present fault says.
    async fn serve<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Data) -> T + Send + 'static,
    ) -> Result<T, StorageError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        sleep(self.latency / 2).await;
        let (fault, data) = (*self.fault.borrow(), Arc::clone(&self.data));
        let answer = match fault {
            Fault::Refuses => return Err(StorageError::new("connection refused")),
            Fault::None | Fault::LosesAnswers => work(&data),
            Fault::Hangs => {
                let mut faults = self.fault.subscribe();
                let late = tokio::spawn(async move {
                    let _ = faults.wait_for(|fault| *fault != Fault::Hangs).await;
                    work(&data)
                });
                late.await.unwrap()
            }
        };
        sleep(self.latency / 2).await;
        match fault {
            Fault::LosesAnswers => Err(StorageError::with_unknown_outcome("connection lost")),
            _ => Ok(answer),
        }
    }
}

impl Data {
    fn change(&self, change: &BudgetChange) -> BudgetState {
        let (limit, now) = (change.limit, u64::try_from(self.started.elapsed().as_millis()).unwrap());
        let mut budgets = self.budgets.lock().unwrap();
        let StoredUse { meter, used, latest } = budgets.entry(change.budget.key).or_default();
        *meter = change.budget.meter;
        let made = latest.get(&change.holder).filter(|(number, ..)| *number >= change.number).copied();
        let (granted, slot) = match made {
            Some((number, slot, granted)) => (if number == change.number { granted } else { 0 }, slot),
            None => {
                for (slot, amount) in &change.given_back {
                    used.give_back(*slot, *amount);
                }
                used.charge(limit, now, change.charged);
                (used.take(limit, now, change.wanted), used.current_slot(limit, now))
            }
        };
        if made.is_none() && !change.only_reads() {
            latest.insert(Arc::clone(&change.holder), (change.number, slot, granted));
        }
        BudgetState {
            granted,
            slot,
            slot_ends_in: Duration::from_millis(limit.slot_ends_in_millis(slot, now)),
            used: used.used(limit, now),
            wait: Duration::from_millis(used.wait_millis(limit, now)),
        }
    }

    fn hold(&self, hold: &PermitHold) -> u64 {
        let (mut permits, now, key) = (self.permits.lock().unwrap(), Instant::now(), hold.budget.key);
        let is_other = |of: &ContentHash, holder: &Arc<str>, until: Instant| {
            *of == key && *holder != hold.holder && until >= now
        };
        let others = permits.iter().filter(|((of, holder), (_, until))| is_other(of, holder, *until));
        let others: u64 = others.map(|(_, (held, _))| held).sum();
        let held = hold.wanted.min(hold.limit.saturating_sub(others));
        permits.insert((key, Arc::clone(&hold.holder)), (held, now + hold.expires_in));
        held
    }
}

impl QuotaBudgets for MemoryBudgets {
    fn change_budget<'a>(
        &'a self,
        change: &'a BudgetChange,
    ) -> BoxFuture<'a, Result<BudgetState, StorageError>> {
        let change = change.clone();
        Box::pin(self.serve(move |data| data.change(&change)))
    }

    fn hold_permits<'a>(&'a self, hold: &'a PermitHold) -> BoxFuture<'a, Result<u64, StorageError>> {
        let hold = hold.clone();
        Box::pin(self.serve(move |data| data.hold(&hold)))
    }

    fn budgets(&self) -> BoxFuture<'_, Result<Vec<StoredBudget>, StorageError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn held_permits(&self) -> BoxFuture<'_, Result<Vec<StoredPermits>, StorageError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
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
    quotas.take_call(&QuotaCall { subject: QuotaSubject::default(), tools: &tools }).wait().await
}

pub(crate) fn calls_rule(limit: u64, window_millis: u64) -> QuotaRule {
    let calls = Some(WindowLimit { limit, window_millis });
    QuotaRule { name: "all".into(), calls, ..QuotaRule::default() }
}
