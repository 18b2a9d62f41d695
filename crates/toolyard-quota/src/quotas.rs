//! [`Quotas`]: all quotas of a process, as the hub and agents ask them.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use toolyard_core::{
    BoxFuture, BudgetChange, BudgetName, BudgetState, CallQuota, ModelUse, PermitHold, QuotaAdmission,
    QuotaBudgets, QuotaCall, QuotaExceeded, QuotaPermit, QuotaSubject, StorageError,
};

use crate::{
    call_admission::CallAdmission,
    counter::Counter,
    quota::Quota,
    rule::{InvalidQuota, QuotaRule},
};

/// A store that takes longer has failed.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a process that ends tries to give back what it does not use.
const GIVE_BACK_TIMEOUT: Duration = Duration::from_secs(5);
/// How often unspent shares and unused permits are given back.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Unused budgets are removed from the store once in so many rounds of upkeep.
const PURGE_ROUNDS: u64 = 600;

/// Quotas that are not in use any more are forgotten after so many rounds of upkeep with a failing store.
const MAX_FAILED_ROUNDS_AFTER_USE: u32 = 60;

/// All quotas of a process. Clones share them.
///
/// When the last clone is dropped, such as after a reload, what is not used is given back. Calls that run keep their permits.
#[derive(Debug, Clone)]
pub struct Quotas {
    inner: Arc<Inner>,
    _in_use: Arc<InUse>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) quotas: Vec<Quota>,
    store: Option<Arc<dyn QuotaBudgets>>,
    /// How many requests to the store failed.
    failures: AtomicU64,
}

/// Tells the upkeep, which goes on for a while, that the quotas are not in use any more.
#[derive(Debug)]
struct InUse {
    inner: Arc<Inner>,
    _until_dropped: watch::Sender<()>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.inner.quotas.iter().for_each(Quota::retire);
    }
}

impl Quotas {
    /// Quotas that only this process knows of.
    pub fn local(rules: Vec<QuotaRule>) -> Result<Self, InvalidQuota> {
        QuotaRule::check_all(&rules)?;
        Ok(Self::new(rules.into_iter().map(Quota::new).collect(), None))
    }

    /// Quotas whose budgets all processes with this store share. Needs a tokio runtime, for the upkeep of shares.
    pub fn shared(rules: Vec<QuotaRule>, store: Arc<dyn QuotaBudgets>) -> Result<Self, InvalidQuota> {
        QuotaRule::check_all(&rules)?;
        Ok(Self::new(rules.into_iter().map(Quota::new).collect(), Some(store)))
    }

    /// Quotas with other rules and the same store. Quotas that count the same as before, whatever their limits, go on counting.
    pub fn with_rules(&self, rules: Vec<QuotaRule>) -> Result<Self, InvalidQuota> {
        QuotaRule::check_all(&rules)?;
        let continued = |rule: &QuotaRule| self.inner.quotas.iter().find_map(|quota| quota.with_rule(rule));
        let quotas = rules.into_iter().map(|rule| continued(&rule).unwrap_or_else(|| Quota::new(rule)));
        Ok(Self::new(quotas.collect(), self.inner.store.clone()))
    }

    fn new(quotas: Vec<Quota>, store: Option<Arc<dyn QuotaBudgets>>) -> Self {
        let inner = Arc::new(Inner { quotas, store, failures: AtomicU64::new(0) });
        let (sender, receiver) = watch::channel(());
        if inner.is_shared() {
            tokio::spawn(keep_up(Arc::clone(&inner), receiver));
        }
        let in_use = InUse { inner: Arc::clone(&inner), _until_dropped: sender };
        Self { inner, _in_use: Arc::new(in_use) }
    }

    /// How many counters there are, over all quotas.
    pub fn counters(&self) -> usize {
        self.inner.quotas.iter().map(Quota::counters).sum()
    }
}

impl CallQuota for Quotas {
    fn take_call<'a>(&'a self, call: &QuotaCall<'_>) -> QuotaAdmission<'a> {
        let admission = CallAdmission::new(&self.inner, call);
        if admission.is_empty() {
            return QuotaAdmission::Ready(Ok(QuotaPermit::default()));
        }
        match admission.try_take() {
            Ok(admitted) => QuotaAdmission::Ready(admitted),
            Err(admission) => QuotaAdmission::Pending(Box::pin(admission.take())),
        }
    }

    fn admit_model_use<'a>(
        &'a self,
        subject: QuotaSubject<'_>,
    ) -> BoxFuture<'a, Result<(), Box<QuotaExceeded>>> {
        let counters = self.inner.model_counters(&subject);
        Box::pin(async move {
            for (quota, counter) in counters {
                self.inner.admit_model_use(quota, &counter).await?;
            }
            Ok(())
        })
    }

    fn charge_model_use<'a>(&'a self, subject: QuotaSubject<'_>, used: ModelUse) -> BoxFuture<'a, ()> {
        let counters = self.inner.model_counters(&subject);
        // Counted at once, even if nobody waits for the store.
        for (quota, counter) in &counters {
            self.inner.count_model_use(quota, counter, used);
        }
        Box::pin(async move {
            for (quota, counter) in counters {
                self.inner.post_model_use(quota, &counter).await;
            }
        })
    }

    fn give_back_unused(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.inner.is_shared() {
                let counters = self.inner.active_counters(|_| true);
                give_up_shares(&counters);
                // What is not answered in time is given back by the upkeep, if this process goes on.
                let _ = timeout(GIVE_BACK_TIMEOUT, self.inner.keep_up(&counters)).await;
            }
        })
    }

    fn refusals(&self) -> Vec<(Arc<str>, u64)> {
        self.inner.quotas.iter().map(|quota| (Arc::clone(&quota.rule.name), quota.refusals())).collect()
    }
}

impl Inner {
    pub(crate) fn is_shared(&self) -> bool {
        self.store.is_some()
    }

    pub(crate) async fn change_budget(&self, change: &BudgetChange) -> Result<BudgetState, StorageError> {
        match &self.store {
            Some(store) => self.observe(within_timeout(store.change_budget(change)).await),
            None => Err(StorageError::new("there is no store")),
        }
    }

    pub(crate) async fn hold_permits(
        &self,
        quota: &Quota,
        budget: &Arc<BudgetName>,
        limit: u64,
        wanted: u64,
    ) -> Result<u64, StorageError> {
        let Some(store) = &self.store else { return Err(StorageError::new("there is no store")) };
        let (budget, expires_in) = (Arc::clone(budget), crate::permits::HOLD_DURATION);
        let hold = PermitHold { budget, holder: quota.holder(), limit, wanted, expires_in };
        self.observe(within_timeout(store.hold_permits(&hold)).await)
    }

    fn observe<T>(&self, answer: Result<T, StorageError>) -> Result<T, StorageError> {
        if answer.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    fn active_counters(&self, is_wanted: impl Fn(&Quota) -> bool) -> Vec<(&Quota, Arc<Counter>)> {
        let now = Instant::now();
        let quotas = self.quotas.iter().filter(|quota| is_wanted(quota));
        quotas
            .flat_map(|quota| quota.active_counters(now).into_iter().map(move |counter| (quota, counter)))
            .collect()
    }

    /// Gives back what is not used, and renews what is: permits first, because they expire.
    async fn keep_up(&self, counters: &[(&Quota, Arc<Counter>)]) {
        for_each(counters, |(quota, counter)| self.keep_up_permits(quota, counter)).await;
        for_each(counters, |(quota, counter)| async move {
            self.keep_up_calls(quota, counter).await;
            self.post_model_use(quota, counter).await;
        })
        .await;
    }
}

/// Ends all shares before their slots do.
fn give_up_shares(counters: &[(&Quota, Arc<Counter>)]) {
    counters.iter().for_each(|(_, counter)| counter.state().share.give_up());
}

/// Runs `work` for all items, for several at the same time.
async fn for_each<'i, T, W: Future<Output = ()>>(items: &'i [T], work: impl Fn(&'i T) -> W) {
    let queue = Mutex::new(items.iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || async {
        while let Some(item) = next() {
            work(item).await;
        }
    };
    tokio::join!(worker(), worker(), worker(), worker(), worker(), worker(), worker(), worker());
}

/// The answer of the store; an error, after which the outcome is unknown, if that takes too long.
pub(crate) async fn within_timeout<T>(
    request: impl Future<Output = Result<T, StorageError>>,
) -> Result<T, StorageError> {
    match timeout(STORE_TIMEOUT, request).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(StorageError::with_unknown_outcome("the store did not answer in time")),
    }
}

/// Gives back what is not used, and renews what is, until the quotas are dropped and their last call has ended.
async fn keep_up(inner: Arc<Inner>, mut until_dropped: watch::Receiver<()>) {
    for round in 1_u64.. {
        // The channel ends when the quotas are dropped.
        if timeout(UPKEEP_INTERVAL, until_dropped.changed()).await.is_ok() {
            break;
        }
        inner.keep_up(&inner.active_counters(|_| true)).await;
        if round % PURGE_ROUNDS == 1
            && let Some(store) = &inner.store
            && let Err(error) = within_timeout(store.purge_budgets()).await
        {
            tracing::debug!(%error, "failed to remove unused budgets of quotas");
        }
    }
    let mut failed_rounds = 0;
    while failed_rounds < MAX_FAILED_ROUNDS_AFTER_USE {
        // Counters that other quotas continue are theirs to keep up.
        let counters = inner.active_counters(Quota::is_retired);
        if counters.is_empty() {
            return;
        }
        let failures = inner.failures.load(Ordering::Relaxed);
        give_up_shares(&counters);
        inner.keep_up(&counters).await;
        drop(counters);
        failed_rounds = if inner.failures.load(Ordering::Relaxed) > failures { failed_rounds + 1 } else { 0 };
        tokio::time::sleep(UPKEEP_INTERVAL).await;
    }
    tracing::warn!("the store failed for too long to give back what replaced quotas held");
}
