//! [`Counter`]: what this process knows of one limit of a quota and whose use it counts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolyard_core::{BudgetCharge, BudgetName, QuotaLimit, StorageError, process_tag};

/// A counter that refused something is asked again after this time at the latest, because its limit may have been raised.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long the store is not asked for permits when other processes had all of them.
const PERMIT_RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// Permits of calls that run are renewed after this time.
const RENEW_AFTER: Duration = Duration::from_secs(5);

/// What this process knows of one limit; what is used of it is in the store.
#[derive(Debug)]
pub(crate) struct Counter {
    pub(crate) budget: Arc<BudgetName>,
    /// The totals of this counter, among those of all processes.
    charge_holder: String,
    state: Mutex<CounterState>,
    /// Held while a call asks the store: one request at a time, so that calls that wait here learn that it is used up, and do not
    /// occupy a connection each.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
pub(crate) struct CounterState {
    pub(crate) limit: QuotaLimit,
    refusal: Option<Refusal>,
    /// Calls that run in this process.
    pub(crate) running: u64,
    /// How many of them the store counts; unknown while a request is on its way or its outcome is unknown.
    held: Option<u64>,
    renew_at: Instant,
    /// All tokens or money that this process used.
    used: u64,
    /// How much of that is certainly charged.
    charged: u64,
    /// When this process last used tokens or money.
    used_at: Option<Instant>,
}

/// Why nothing can be taken, and until when.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) until: Instant,
    ask_again_at: Instant,
    pub(crate) store_error: Option<String>,
}

impl Refusal {
    pub(crate) fn used_up(wait: Duration) -> Self {
        let now = Instant::now();
        Self { until: now + wait, ask_again_at: now + wait.min(RETRY_INTERVAL), store_error: None }
    }

    /// Other processes have all permits, and may give one back at any time.
    pub(crate) fn held_by_others() -> Self {
        Self { ask_again_at: Instant::now() + PERMIT_RETRY_INTERVAL, ..Self::used_up(RETRY_INTERVAL) }
    }

    pub(crate) fn store_failed(error: &StorageError) -> Self {
        Self { store_error: Some(error.to_string()), ..Self::used_up(RETRY_INTERVAL) }
    }
}

impl Counter {
    pub(crate) fn new(budget: BudgetName, limit: QuotaLimit) -> Self {
        static NEXT_HOLDER: AtomicU64 = AtomicU64::new(0);
        let number = NEXT_HOLDER.fetch_add(1, Ordering::Relaxed);
        let state = CounterState {
            limit,
            refusal: None,
            running: 0,
            held: Some(0),
            renew_at: Instant::now(),
            used: 0,
            charged: 0,
            used_at: None,
        };
        Self {
            budget: Arc::new(budget),
            charge_holder: format!("{}-{number}", process_tag()),
            state: Mutex::new(state),
            turn: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, CounterState> {
        // Nothing panics between the changes of the state.
        self.state.lock()
    }

    /// What the store has to be told of tokens or money; `None` for calls at the same time.
    pub(crate) fn charge(&self) -> Option<BudgetCharge> {
        let state = self.state();
        Some(BudgetCharge {
            budget: Arc::clone(&self.budget),
            limit: state.limit.per_window()?,
            holder: self.charge_holder.clone(),
            charged_before: state.charged,
            total: state.used,
        })
    }
}

impl CounterState {
    /// A changed limit is in effect at once.
    pub(crate) fn set_limit(&mut self, limit: QuotaLimit) {
        if self.limit != limit {
            (self.limit, self.refusal) = (limit, None);
        }
    }

    pub(crate) fn set_refusal(&mut self, refusal: &Refusal) {
        self.refusal = Some(refusal.clone());
    }

    /// Why the store need not be asked.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref().filter(|refusal| Instant::now() < refusal.ask_again_at)
    }

    pub(crate) fn count_use(&mut self, amount: u64) {
        self.used = self.used.saturating_add(amount);
        self.used_at = Some(Instant::now());
    }

    pub(crate) fn set_charged(&mut self, total: u64) {
        self.charged = self.charged.max(total);
    }

    pub(crate) fn is_charge_due(&self) -> bool {
        self.used > self.charged
    }

    /// Begins to tell the store how many calls run.
    pub(crate) fn begin_hold(&mut self) -> u64 {
        self.held = None;
        self.running
    }

    /// The store's answer to a request that was sent at this time.
    pub(crate) fn set_held(&mut self, asked_at: Instant, held: u64) {
        (self.held, self.renew_at) = (Some(held), asked_at + RENEW_AFTER);
    }

    /// Whether the store has to be told how many calls run, or that they still do.
    pub(crate) fn is_hold_due(&self) -> bool {
        self.held != Some(self.running) || (self.running > 0 && Instant::now() >= self.renew_at)
    }

    /// Whether tokens or money were used in this time.
    pub(crate) fn was_used_within(&self, time: Duration) -> bool {
        self.used_at.is_some_and(|at| at.elapsed() < time)
    }

    /// Whether nothing would be lost without this counter. The store forgets permits that nobody renews.
    pub(crate) fn is_idle(&self) -> bool {
        self.running == 0 && !self.is_charge_due() && self.refusal().is_none()
    }
}
