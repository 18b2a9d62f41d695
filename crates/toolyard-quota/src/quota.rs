//! [`Quota`]: one rule with its counters.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use hashbrown::HashMap;
use tokio::time::Instant;
use toolyard_core::{QuotaExceeded, QuotaLimit, QuotaSubject, QuotaTool, process_tag};

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
    counters: Arc<Counters>,
}

/// The counters of a quota. They outlive a change of its rule that leaves what is counted as it is.
#[derive(Debug)]
struct Counters {
    /// The name of these counters in the store.
    holder: Arc<str>,
    /// Windows without a store count from here.
    started: Instant,
    by_key: Mutex<CounterMap>,
    refusals: AtomicU64,
    /// How many sets of quotas that are in use have these counters.
    users: AtomicUsize,
}

#[derive(Debug)]
struct CounterMap {
    by_key: HashMap<CounterKey, Arc<Counter>>,
    purge_at: usize,
}

impl Quota {
    pub(crate) fn new(rule: QuotaRule) -> Self {
        // The counters of one process hold permits independently, such as those from before and after a reload.
        static NEXT_HOLDER: AtomicU64 = AtomicU64::new(0);
        let number = NEXT_HOLDER.fetch_add(1, Ordering::Relaxed);
        let counters = Counters {
            holder: format!("{}-{number}", process_tag()).into(),
            started: Instant::now(),
            by_key: Mutex::new(CounterMap { by_key: HashMap::new(), purge_at: MIN_COUNTERS_TO_PURGE }),
            refusals: AtomicU64::new(0),
            users: AtomicUsize::new(1),
        };
        Self { rule, counters: Arc::new(counters) }
    }

    /// The quota with another rule, which goes on counting; `None` if the rule counts something else.
    pub(crate) fn with_rule(&self, rule: &QuotaRule) -> Option<Self> {
        self.rule.counts_like(rule).then(|| {
            self.counters.users.fetch_add(1, Ordering::Relaxed);
            Self { rule: rule.clone(), counters: Arc::clone(&self.counters) }
        })
    }

    /// The set of quotas that this quota belongs to is no longer in use.
    pub(crate) fn retire(&self) {
        self.counters.users.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether no set of quotas that is in use has these counters.
    pub(crate) fn is_retired(&self) -> bool {
        self.counters.users.load(Ordering::Relaxed) == 0
    }

    /// The name of these counters in the store.
    pub(crate) fn holder(&self) -> Arc<str> {
        Arc::clone(&self.counters.holder)
    }

    /// Milliseconds of this process's windows.
    pub(crate) fn millis(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.counters.started);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    /// The counter of this use, made if there is none.
    pub(crate) fn counter(
        &self,
        subject: &QuotaSubject<'_>,
        tool: Option<QuotaTool<'_>>,
        now: Instant,
    ) -> Arc<Counter> {
        let key = CounterKeyRef::new(self.rule.per, subject, tool);
        let mut counters = self.lock();
        if let Some(counter) = counters.by_key.get(&key) {
            return Arc::clone(counter);
        }
        if counters.by_key.len() >= counters.purge_at {
            counters.purge(&self.rule, now, self.millis(now));
        }
        let counter = Arc::new(Counter::new(&self.rule, key, subject));
        counters.by_key.insert(key.to_key(), Arc::clone(&counter));
        counter
    }

    /// All counters, after the idle ones were dropped.
    pub(crate) fn active_counters(&self, now: Instant) -> Vec<Arc<Counter>> {
        let mut counters = self.lock();
        counters.purge(&self.rule, now, self.millis(now));
        counters.by_key.values().map(Arc::clone).collect()
    }

    /// The number of counters.
    pub(crate) fn counters(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Counts a refusal and describes it.
    pub(crate) fn refuse(&self, limit: QuotaLimit, refusal: Refusal) -> Box<QuotaExceeded> {
        self.counters.refusals.fetch_add(1, Ordering::Relaxed);
        let Refusal { retry_after, store_error } = refusal;
        Box::new(QuotaExceeded { quota: Arc::clone(&self.rule.name), limit, retry_after, store_error })
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.counters.refusals.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, CounterMap> {
        // Nothing panics between the changes of the map.
        self.counters.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CounterMap {
    fn purge(&mut self, rule: &QuotaRule, now: Instant, now_millis: u64) {
        // A counter that a call refers to is not idle, even if it says so.
        self.by_key
            .retain(|_, counter| Arc::strong_count(counter) > 1 || !counter.is_idle(rule, now, now_millis));
        self.purge_at = self.by_key.len().saturating_mul(2).max(MIN_COUNTERS_TO_PURGE);
    }
}
