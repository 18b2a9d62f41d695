//! [`Counters`]: all counters of a process, and the requests to the store that has what is used of them.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt as _, stream};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{
    BudgetName, BudgetTake, ContentHash, PermitHold, QuotaBudgets, QuotaExceeded, QuotaLimit, QuotaPermit,
    QuotaSubject, QuotaTool, StorageError, process_tag,
};

use crate::{
    counter::{Counter, RETRY_INTERVAL, Refusal},
    counter_key::CounterKey,
    rule::QuotaRule,
};

/// A store that takes longer has failed.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// After this time without a renewal, others get the permits of a process.
const HOLD_DURATION: Duration = Duration::from_secs(15);
/// How often the store is told which calls run, and what it did not accept before.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);
const MAX_UPKEEP_REQUESTS: usize = 8;
/// Unused budgets are removed from the store once in so many rounds of upkeep.
const PURGE_ROUNDS: u64 = 600;
/// How long a counter of tokens or money is kept after its last use. Each new one is another holder in the store, which remembers
/// holders for longer.
const COUNTER_RETENTION: Duration = Duration::from_secs(300);
/// Idle counters are dropped when there are more than this, and again each time the number has doubled.
const MIN_COUNTERS_TO_PURGE: usize = 1_024;

/// All counters of a process. They outlive a change of the rules, and continue where quotas count the same.
#[derive(Debug)]
pub(crate) struct Counters {
    store: Arc<dyn QuotaBudgets>,
    /// The name of these counters in the store, as the holder of permits.
    holder: Arc<str>,
    by_key: Mutex<CounterMap>,
    refusals: Mutex<HashMap<Arc<str>, u64>>,
}

#[derive(Debug, Default)]
struct CounterMap {
    by_key: HashMap<ContentHash, Arc<Counter>>,
    purge_at: usize,
}

/// A limit that is about a call.
pub(crate) struct Limited {
    pub(crate) quota: Arc<str>,
    pub(crate) limit: QuotaLimit,
    pub(crate) counter: Arc<Counter>,
}

/// A call that runs, until this is dropped.
struct RunningCall(Arc<Counter>);

impl RunningCall {
    fn start(counter: &Arc<Counter>) -> Self {
        counter.state().running += 1;
        Self(Arc::clone(counter))
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.state().running -= 1;
    }
}

impl Counters {
    pub(crate) fn new(store: Arc<dyn QuotaBudgets>) -> Self {
        static NEXT_HOLDER: AtomicU64 = AtomicU64::new(0);
        let number = NEXT_HOLDER.fetch_add(1, Ordering::Relaxed);
        Self {
            store,
            holder: format!("{}-{number}", process_tag()).into(),
            by_key: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    /// The counter of a limit, made if there is none.
    pub(crate) fn limited(
        &self,
        rule: &QuotaRule,
        limit: QuotaLimit,
        subject: &QuotaSubject<'_>,
        tool: Option<QuotaTool<'_>>,
    ) -> Limited {
        let whose = CounterKey::new(rule.per, subject, tool);
        let key = whose.hash_for(&rule.name, limit);
        let mut counters = self.lock();
        if counters.by_key.len() >= counters.purge_at.max(MIN_COUNTERS_TO_PURGE)
            && !counters.by_key.contains_key(&key)
        {
            counters.retain(|counter| !counter.state().is_idle());
            counters.purge_at = counters.by_key.len().saturating_mul(2);
        }
        let counter = counters.by_key.entry(key).or_insert_with(|| {
            let (quota, meter, subject) = (Arc::clone(&rule.name), limit.meter(), whose.describe(subject));
            Arc::new(Counter::new(BudgetName { key, quota, meter, subject }, limit))
        });
        counter.state().set_limit(limit);
        Limited { quota: Arc::clone(&rule.name), limit, counter: Arc::clone(counter) }
    }

    /// Takes a call from all of these limits or from none.
    pub(crate) async fn take_call(&self, limits: &[Limited]) -> Result<QuotaPermit, Box<QuotaExceeded>> {
        // In one order, so that calls never wait for each other's turn.
        let mut by_key: Vec<&Limited> = limits.iter().collect();
        by_key.sort_unstable_by_key(|limited| limited.counter.budget.key);
        let turns = async {
            let mut turns = Vec::with_capacity(limits.len());
            for limited in by_key {
                turns.push(limited.counter.turn.lock().await);
            }
            turns
        };
        let Ok(_turns) = timeout(STORE_TIMEOUT, turns).await else {
            return match limits.first() {
                Some(first) => Err(self.refuse(first, Refusal::store_failed(&no_answer()))),
                None => Ok(QuotaPermit::default()),
            };
        };
        for limited in limits {
            let refusal = limited.counter.state().refusal().cloned();
            if let Some(refusal) = refusal {
                return Err(self.refuse(limited, refusal));
            }
        }
        let mut running = Vec::new();
        match self.take_all(limits, &mut running).await {
            Ok(()) if running.is_empty() => Ok(QuotaPermit::default()),
            Ok(()) => Ok(QuotaPermit::holding(running)),
            Err(exceeded) => {
                drop(running);
                if exceeded.store_error.is_none() {
                    self.give_back_permits(limits).await;
                }
                Err(exceeded)
            }
        }
    }

    async fn take_all(
        &self,
        limits: &[Limited],
        running: &mut Vec<RunningCall>,
    ) -> Result<(), Box<QuotaExceeded>> {
        for limited in limits {
            if let QuotaLimit::ConcurrentCalls(limit) = limited.limit {
                running.push(self.take_permit(limited, limit).await?);
            }
        }
        self.take_from_windows(limits).await
    }

    /// Gives permits of a refused call back to the store. The call has the turns.
    async fn give_back_permits(&self, limits: &[Limited]) {
        for limited in limits {
            let is_due = limited.counter.state().is_hold_due();
            if let (QuotaLimit::ConcurrentCalls(limit), true) = (limited.limit, is_due)
                && let Err(error) = self.hold(&limited.counter, limit).await
            {
                // Upkeep tries again.
                tracing::debug!(quota = %limited.quota, %error, "failed to give a permit back");
            }
        }
    }

    async fn take_permit(&self, limited: &Limited, limit: u64) -> Result<RunningCall, Box<QuotaExceeded>> {
        let call = RunningCall::start(&limited.counter);
        let is_local_limit_reached = limited.counter.state().running > limit;
        if is_local_limit_reached {
            return Err(self.refuse(limited, Refusal::used_up(RETRY_INTERVAL)));
        }
        match self.hold(&limited.counter, limit).await {
            Ok(true) => Ok(call),
            Ok(false) => {
                let refusal = Refusal::held_by_others();
                limited.counter.state().set_refusal(&refusal);
                Err(self.refuse(limited, refusal))
            }
            Err(error) => Err(self.store_failed(&[limited], limited, &error)),
        }
    }

    async fn take_from_windows(&self, limits: &[Limited]) -> Result<(), Box<QuotaExceeded>> {
        let mut windows = Vec::new();
        let mut takes = Vec::new();
        for limited in limits {
            if let Some(limit) = limited.limit.per_window() {
                windows.push(limited);
                takes.push(BudgetTake { budget: Arc::clone(&limited.counter.budget), limit });
            }
        }
        let Some(first) = windows.first() else { return Ok(()) };
        match within_timeout(self.store.take(&takes)).await {
            Ok(waits) => {
                let mut refused = windows.iter().zip(waits).filter(|(_, wait)| !wait.is_zero());
                let Some((limited, wait)) = refused.next() else { return Ok(()) };
                let refusal = Refusal::used_up(wait);
                limited.counter.state().set_refusal(&refusal);
                Err(self.refuse(limited, refusal))
            }
            Err(error) => Err(self.store_failed(&windows, first, &error)),
        }
    }

    /// Tells the store how many calls run; returns whether there is a permit for each.
    async fn hold(&self, counter: &Counter, limit: u64) -> Result<bool, StorageError> {
        let wanted = counter.state().begin_hold();
        let (budget, holder) = (Arc::clone(&counter.budget), Arc::clone(&self.holder));
        let hold = PermitHold { budget, holder, limit, wanted, expires_in: HOLD_DURATION };
        let asked_at = Instant::now();
        let held = within_timeout(self.store.hold_permits(&hold)).await?;
        counter.state().set_held(asked_at, held);
        Ok(held >= wanted)
    }

    /// Charges tokens or money that the store does not know yet; returns how long to wait until something is left.
    pub(crate) async fn charge(&self, counter: &Counter) -> Result<Duration, StorageError> {
        let Some(charge) = counter.charge() else { return Ok(Duration::ZERO) };
        let wait = within_timeout(self.store.charge(&charge)).await?;
        counter.state().set_charged(charge.total);
        Ok(wait)
    }

    /// Counts a refusal and describes it.
    pub(crate) fn refuse(&self, limited: &Limited, refusal: Refusal) -> Box<QuotaExceeded> {
        let mut refusals = self.refusals.lock();
        *refusals.entry(Arc::clone(&limited.quota)).or_default() += 1;
        drop(refusals);
        Box::new(QuotaExceeded {
            quota: Arc::clone(&limited.quota),
            limit: limited.limit,
            retry_after: refusal.until.saturating_duration_since(Instant::now()),
            store_error: refusal.store_error,
        })
    }

    /// Refuses a call because of the store, which is not asked again for a moment.
    fn store_failed(
        &self,
        asked_for: &[&Limited],
        limited: &Limited,
        error: &StorageError,
    ) -> Box<QuotaExceeded> {
        tracing::warn!(quota = %limited.quota, %error, "failed to ask the store for a call of a quota");
        let refusal = Refusal::store_failed(error);
        for limited in asked_for {
            limited.counter.state().set_refusal(&refusal);
        }
        self.refuse(limited, refusal)
    }

    pub(crate) fn refusals(&self, quota: &str) -> u64 {
        let refusals = self.refusals.lock();
        refusals.get(quota).copied().unwrap_or_default()
    }

    /// The number of counters.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Renews permits, which others get if that is late; then tells the store what it does not know yet.
    pub(crate) async fn settle(&self) {
        let counters: Vec<Arc<Counter>> = self.lock().by_key.values().map(Arc::clone).collect();
        let holds = stream::iter(counters.clone()).map(|counter| self.settle_hold(counter));
        let failed_hold = last_failure(holds).await;
        let charges = stream::iter(counters).map(|counter| self.settle_charge(counter));
        if let Some(error) = last_failure(charges).await.or(failed_hold) {
            tracing::warn!(%error, "failed to tell the store what is used of quotas");
        }
    }

    async fn settle_charge(&self, counter: Arc<Counter>) -> Result<(), StorageError> {
        if counter.state().is_charge_due() {
            self.charge(&counter).await?;
        }
        Ok(())
    }

    async fn settle_hold(&self, counter: Arc<Counter>) -> Result<(), StorageError> {
        if counter.state().is_hold_due() {
            let _turn = counter.turn.lock().await;
            // Whoever had the turn before may have told the store. The state is not locked while it is asked.
            let (limit, is_due) = {
                let state = counter.state();
                (state.limit, state.is_hold_due())
            };
            if let (QuotaLimit::ConcurrentCalls(limit), true) = (limit, is_due) {
                self.hold(&counter, limit).await?;
            }
        }
        Ok(())
    }

    /// Drops the counters of which the store knows all and that were not used for this time; returns how many are left.
    fn drop_settled(&self, retention: Duration) -> usize {
        let mut counters = self.lock();
        counters.retain(|counter| {
            let state = counter.state();
            !state.is_idle() || state.is_hold_due() || state.was_used_within(retention)
        });
        counters.by_key.len()
    }

    fn lock(&self) -> MutexGuard<'_, CounterMap> {
        // Nothing panics between the changes of the map.
        self.by_key.lock()
    }
}

impl CounterMap {
    fn retain(&mut self, is_needed: impl Fn(&Counter) -> bool) {
        // A call may have a counter without having asked for anything yet.
        self.by_key.retain(|_, counter| Arc::strong_count(counter) > 1 || is_needed(counter));
    }
}

/// The answer of the store; an error, after which the outcome is unknown, if that takes too long.
async fn within_timeout<T>(
    request: impl Future<Output = Result<T, StorageError>>,
) -> Result<T, StorageError> {
    match timeout(STORE_TIMEOUT, request).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(no_answer()),
    }
}

fn no_answer() -> StorageError {
    StorageError::with_unknown_outcome("the store did not answer in time")
}

/// Makes these requests, several at a time; returns an error of one that failed.
async fn last_failure<F>(requests: impl Stream<Item = F>) -> Option<StorageError>
where
    F: Future<Output = Result<(), StorageError>>,
{
    let answers = requests.buffer_unordered(MAX_UPKEEP_REQUESTS);
    answers.fold(None, |failure, answer| async move { answer.err().or(failure) }).await
}

/// Keeps the store up to date until no quotas use the counters, the last call has ended, and the store knows all.
pub(crate) async fn keep_up(counters: Arc<Counters>) {
    for round in 1_u64.. {
        sleep(UPKEEP_INTERVAL).await;
        counters.settle().await;
        if round % PURGE_ROUNDS == 1
            && let Err(error) = within_timeout(counters.store.purge_budgets()).await
        {
            tracing::debug!(%error, "failed to remove unused budgets of quotas");
        }
        let is_in_use = Arc::strong_count(&counters) > 1;
        let retention = if is_in_use { COUNTER_RETENTION } else { Duration::ZERO };
        if counters.drop_settled(retention) == 0 && !is_in_use {
            return;
        }
    }
}
