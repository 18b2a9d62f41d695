//! [`MemoryBudgets`]: the counters of quotas for one process without a store.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolyard_core::{
    BoxFuture, BudgetCharge, BudgetName, BudgetTake, ContentHash, PermitHold, QuotaBudgets, StorageError,
    WindowLimit, WindowUse,
};

/// Unused budgets are dropped when there are more than this, and again each time the number has doubled.
const MIN_BUDGETS_TO_PURGE: usize = 1_024;

/// Counters that this process forgets at its end.
#[derive(Debug)]
pub struct MemoryBudgets {
    /// Windows count from here.
    started: Instant,
    budgets: Mutex<Budgets>,
}

#[derive(Debug, Default)]
struct Budgets {
    windows: HashMap<ContentHash, Window>,
    purge_at: usize,
    /// How many permits each holder has until when.
    permits: HashMap<(ContentHash, Arc<str>), (u64, Instant)>,
}

#[derive(Debug)]
struct Window {
    meter: &'static str,
    limit: WindowLimit,
    used: WindowUse,
    /// The total that is charged of each holder.
    charged: HashMap<String, u64>,
}

impl Default for MemoryBudgets {
    fn default() -> Self {
        Self { started: Instant::now(), budgets: Mutex::default() }
    }
}

impl MemoryBudgets {
    fn now_millis(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Budgets> {
        // Nothing panics between the changes of the budgets.
        self.budgets.lock()
    }

    fn take_now(&self, takes: &[BudgetTake]) -> Vec<Duration> {
        let (mut budgets, now) = (self.lock(), self.now_millis());
        let mut wait = |take: &BudgetTake| {
            let window = budgets.window(&take.budget, take.limit, now);
            Duration::from_millis(window.used.wait_millis(take.limit, now))
        };
        let waits: Vec<Duration> = takes.iter().map(&mut wait).collect();
        if waits.iter().all(Duration::is_zero) {
            for take in takes {
                budgets.window(&take.budget, take.limit, now).used.take(take.limit, now, 1);
            }
        }
        waits
    }

    fn charge_now(&self, charge: &BudgetCharge) -> Duration {
        let (mut budgets, now) = (self.lock(), self.now_millis());
        let window = budgets.window(&charge.budget, charge.limit, now);
        if charge.total > charge.charged_before {
            let known = window.charged.entry(charge.holder.clone()).or_default();
            let charged_before = charge.charged_before.max(*known);
            *known = charge.total.max(charged_before);
            window.used.charge(charge.limit, now, *known - charged_before);
        }
        Duration::from_millis(window.used.wait_millis(charge.limit, now))
    }

    fn hold_now(&self, hold: &PermitHold) -> u64 {
        let (mut budgets, now, key) = (self.lock(), Instant::now(), hold.budget.key);
        budgets.permits.retain(|_, (held, until)| *held > 0 && *until >= now);
        let others = budgets.permits.iter().filter(|((of, holder), _)| *of == key && *holder != hold.holder);
        let others: u64 = others.map(|(_, (held, _))| held).sum();
        let held = hold.wanted.min(hold.limit.saturating_sub(others));
        budgets.permits.insert((key, Arc::clone(&hold.holder)), (held, now + hold.expires_in));
        held
    }

    /// What is used of all budgets of a [meter](toolyard_core::QuotaLimit::meter).
    pub fn used(&self, meter: &str) -> u64 {
        let (mut budgets, now) = (self.lock(), self.now_millis());
        let of_meter = budgets.windows.values_mut().filter(|window| window.meter == meter);
        of_meter.map(|window| window.used.used(window.limit, now)).sum()
    }

    /// How many permits are held.
    pub fn held(&self) -> u64 {
        let now = Instant::now();
        let budgets = self.lock();
        budgets.permits.values().filter(|(_, until)| *until >= now).map(|(held, _)| held).sum()
    }
}

impl Budgets {
    /// The window of a budget, created if there is none.
    fn window(&mut self, budget: &BudgetName, limit: WindowLimit, now_millis: u64) -> &mut Window {
        let (key, meter) = (budget.key, budget.meter);
        if self.windows.len() >= self.purge_at.max(MIN_BUDGETS_TO_PURGE) && !self.windows.contains_key(&key) {
            self.purge(now_millis);
            self.purge_at = self.windows.len().saturating_mul(2);
        }
        let new = || Window { meter, limit, used: WindowUse::default(), charged: HashMap::new() };
        let window = self.windows.entry(key).or_insert_with(new);
        window.limit = limit;
        window
    }

    fn purge(&mut self, now_millis: u64) {
        self.windows.retain(|_, window| window.used.used(window.limit, now_millis) > 0);
    }
}

impl QuotaBudgets for MemoryBudgets {
    fn take<'a>(&'a self, takes: &'a [BudgetTake]) -> BoxFuture<'a, Result<Vec<Duration>, StorageError>> {
        Box::pin(std::future::ready(Ok(self.take_now(takes))))
    }

    fn charge<'a>(&'a self, charge: &'a BudgetCharge) -> BoxFuture<'a, Result<Duration, StorageError>> {
        Box::pin(std::future::ready(Ok(self.charge_now(charge))))
    }

    fn hold_permits<'a>(&'a self, hold: &'a PermitHold) -> BoxFuture<'a, Result<u64, StorageError>> {
        Box::pin(std::future::ready(Ok(self.hold_now(hold))))
    }

    fn purge_budgets(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.lock().purge(self.now_millis());
        Box::pin(std::future::ready(Ok(())))
    }
}
