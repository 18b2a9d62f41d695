//! [`Quota`]: one rule with its counters.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use hashbrown::HashMap;
use tokio::time::Instant;
use toolyard_core::{QuotaExceeded, QuotaLimit, QuotaSubject, QuotaTool};

use crate::{
    call_share::Refusal,
    counter::Counter,
    counter_key::{CounterKey, CounterKeyRef},
    rule::QuotaRule,
};

/// Idle counters are dropped when there are more than this, and again each time the number has doubled.
const MIN_COUNTERS_TO_PURGE: usize = 1_024;

/// One rule with its counters.
#[derive(Debug)]
pub(crate) struct Quota {
    pub(crate) rule: QuotaRule,
    counters: Mutex<Counters>,
    refusals: AtomicU64,
}

#[derive(Debug)]
struct Counters {
    by_key: HashMap<CounterKey, Arc<Counter>>,
    purge_at: usize,
}

impl Quota {
    pub(crate) fn new(rule: QuotaRule) -> Self {
        let counters = Counters { by_key: HashMap::new(), purge_at: MIN_COUNTERS_TO_PURGE };
        Self { rule, counters: Mutex::new(counters), refusals: AtomicU64::new(0) }
    }

    /// The counter of this use, made if there is none. `now` is this process's clock, `now_millis` that of its windows.
    pub(crate) fn counter(
        &self,
        subject: &QuotaSubject<'_>,
        tool: Option<QuotaTool<'_>>,
        now: Instant,
        now_millis: u64,
    ) -> Arc<Counter> {
        let key = CounterKeyRef::new(self.rule.per, subject, tool);
        let mut counters = self.lock();
        if let Some(counter) = counters.by_key.get(&key) {
            return Arc::clone(counter);
        }
        if counters.by_key.len() >= counters.purge_at {
            counters.purge(&self.rule, now, now_millis);
        }
        let counter = Arc::new(Counter::new(&self.rule, key, subject));
        counters.by_key.insert(key.to_key(), Arc::clone(&counter));
        counter
    }

    /// All counters, after the idle ones were dropped.
    pub(crate) fn active_counters(&self, now: Instant, now_millis: u64) -> Vec<Arc<Counter>> {
        let mut counters = self.lock();
        counters.purge(&self.rule, now, now_millis);
        counters.by_key.values().map(Arc::clone).collect()
    }

    /// The number of counters.
    pub(crate) fn counters(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Counts a refusal and describes it.
    pub(crate) fn refuse(&self, limit: QuotaLimit, refusal: Refusal) -> Box<QuotaExceeded> {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        let Refusal { retry_after, store_error } = refusal;
        Box::new(QuotaExceeded { quota: Arc::clone(&self.rule.name), limit, retry_after, store_error })
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Counters> {
        // Nothing panics between the changes of the map.
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    fn purge(&mut self, rule: &QuotaRule, now: Instant, now_millis: u64) {
        // A counter that a call refers to is not idle, even if it says so.
        self.by_key
            .retain(|_, counter| Arc::strong_count(counter) > 1 || !counter.is_idle(rule, now, now_millis));
        self.purge_at = self.by_key.len().saturating_mul(2).max(MIN_COUNTERS_TO_PURGE);
    }
}
