//! [`Quotas`]: all quotas of a process, as the hub and agents ask them.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};
use toolyard_core::{
    BoxFuture, BudgetChange, BudgetState, CallQuota, ContentHash, ModelUse, PermitHold, QuotaAdmission,
    QuotaBudgets, QuotaCall, QuotaExceeded, QuotaPermit, QuotaSubject, StorageError, process_tag,
};

use crate::{
    call_admission::CallAdmission,
    quota::Quota,
    rule::{InvalidQuota, QuotaRule},
};

/// A store that takes longer has failed.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often unspent shares and unused permits are given back.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Unused budgets are removed from the store once in so many rounds of upkeep.
const PURGE_ROUNDS: u64 = 600;

/// All quotas of a process. Clones share them.
#[derive(Debug, Clone)]
pub struct Quotas {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) quotas: Vec<Quota>,
    store: Option<Arc<dyn QuotaBudgets>>,
    /// The name of this process in the store.
    holder: String,
    /// Windows without a store count from here.
    started: Instant,
}

impl Quotas {
    /// Quotas that only this process knows of.
    pub fn local(rules: Vec<QuotaRule>) -> Result<Self, InvalidQuota> {
        Self::new(rules, None)
    }

    /// Quotas whose budgets all processes with this store share. Needs a tokio runtime, for the upkeep of shares.
    pub fn shared(rules: Vec<QuotaRule>, store: Arc<dyn QuotaBudgets>) -> Result<Self, InvalidQuota> {
        let quotas = Self::new(rules, Some(store))?;
        tokio::spawn(keep_up(Arc::downgrade(&quotas.inner)));
        Ok(quotas)
    }

    fn new(rules: Vec<QuotaRule>, store: Option<Arc<dyn QuotaBudgets>>) -> Result<Self, InvalidQuota> {
        QuotaRule::check_all(&rules)?;
        // A process may have several sets of quotas, such as before and after a reload.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let holder = format!("{}-{number}", process_tag());
        let quotas = rules.into_iter().map(Quota::new).collect();
        Ok(Self { inner: Arc::new(Inner { quotas, store, holder, started: Instant::now() }) })
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
                let now = Instant::now();
                for quota in &self.inner.quotas {
                    for counter in quota.active_counters(now, self.inner.millis(now)) {
                        counter.state().share.give_up();
                    }
                }
                self.inner.keep_up().await;
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

    /// Milliseconds of this process's windows.
    pub(crate) fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) async fn change_budget(&self, change: &BudgetChange) -> Result<BudgetState, StorageError> {
        match &self.store {
            Some(store) => within_timeout(store.change_budget(change)).await,
            None => Err(StorageError::new("there is no store")),
        }
    }

    pub(crate) async fn hold_permits(
        &self,
        key: ContentHash,
        limit: u64,
        wanted: u64,
    ) -> Result<u64, StorageError> {
        let Some(store) = &self.store else { return Err(StorageError::new("there is no store")) };
        let (holder, expires_in) = (self.holder.clone(), crate::permits::HOLD_DURATION);
        within_timeout(store.hold_permits(&PermitHold { key, holder, limit, wanted, expires_in })).await
    }

    /// Gives back what is not used, and renews what is.
    async fn keep_up(&self) {
        for quota in &self.quotas {
            let now = Instant::now();
            for counter in quota.active_counters(now, self.millis(now)) {
                self.keep_up_calls(quota, &counter).await;
                self.keep_up_permits(quota, &counter).await;
                self.post_model_use(quota, &counter).await;
            }
        }
    }
}

async fn within_timeout<T>(
    request: impl Future<Output = Result<T, StorageError>>,
) -> Result<T, StorageError> {
    match timeout(STORE_TIMEOUT, request).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(StorageError::new("the store did not answer in time")),
    }
}

/// Gives back what is not used, and renews what is, until the quotas are dropped.
async fn keep_up(quotas: Weak<Inner>) {
    for round in 0_u64.. {
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        let Some(inner) = quotas.upgrade() else { return };
        if round % PURGE_ROUNDS == 0
            && let Some(store) = &inner.store
            && let Err(error) = within_timeout(store.purge_budgets()).await
        {
            tracing::debug!(%error, "failed to remove unused budgets of quotas");
        }
        inner.keep_up().await;
    }
}
