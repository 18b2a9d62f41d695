//! [`Quotas`]: all quotas of a process, as the hub and agents ask them.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use toolyard_core::{
    BoxFuture, CallQuota, ModelUse, QuotaBudgets, QuotaCall, QuotaExceeded, QuotaLimit, QuotaPermit,
    QuotaSubject,
};

use crate::{
    counter::Refusal,
    counters::{Counters, Limited, keep_up},
    memory::MemoryBudgets,
    rule::{InvalidQuota, QuotaRule},
};

/// How long a process that ends tries to tell the store what it used.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// All quotas of a process. Clones share them.
#[derive(Debug, Clone)]
pub struct Quotas {
    rules: Arc<[QuotaRule]>,
    counters: Arc<Counters>,
}

impl Quotas {
    /// Quotas that only this process knows of.
    pub fn local(rules: Vec<QuotaRule>) -> Result<Self, InvalidQuota> {
        QuotaRule::check_all(&rules)?;
        let counters = Counters::new(Arc::new(MemoryBudgets::default()));
        Ok(Self { rules: rules.into(), counters: Arc::new(counters) })
    }

    /// Quotas that all processes with this store share. Needs a tokio runtime, to renew permits.
    pub fn shared(rules: Vec<QuotaRule>, store: Arc<dyn QuotaBudgets>) -> Result<Self, InvalidQuota> {
        QuotaRule::check_all(&rules)?;
        let counters = Arc::new(Counters::new(store));
        tokio::spawn(keep_up(Arc::clone(&counters)));
        Ok(Self { rules: rules.into(), counters })
    }

    /// Quotas with other rules and the same counters: a quota with the same name, windows and `per` goes on counting.
    pub fn with_rules(&self, rules: Vec<QuotaRule>) -> Result<Self, InvalidQuota> {
        QuotaRule::check_all(&rules)?;
        Ok(Self { rules: rules.into(), counters: Arc::clone(&self.counters) })
    }

    /// How many counters there are, over all quotas.
    pub fn counters(&self) -> usize {
        self.counters.len()
    }

    fn limits_of_call(&self, call: &QuotaCall<'_>) -> Vec<Limited> {
        let mut limits: Vec<Limited> = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.is_for(&call.subject)) {
            for limit in rule.call_limits() {
                for tool in call.tools.iter().filter(|tool| rule.is_for_tool(**tool)) {
                    let limited = self.counters.limited(rule, limit, &call.subject, Some(*tool));
                    // Equivalent tools that are counted together are one call.
                    if !limits.iter().any(|other| Arc::ptr_eq(&other.counter, &limited.counter)) {
                        limits.push(limited);
                    }
                }
            }
        }
        limits
    }

    fn limits_of_models(&self, subject: &QuotaSubject<'_>) -> Vec<Limited> {
        let rules = self.rules.iter().filter(|rule| rule.is_for(subject));
        rules
            .flat_map(|rule| rule.model_limits().map(move |limit| (rule, limit)))
            .map(|(rule, limit)| self.counters.limited(rule, limit, subject, None))
            .collect()
    }
}

impl CallQuota for Quotas {
    fn take_call<'a>(
        &'a self,
        call: &QuotaCall<'_>,
    ) -> BoxFuture<'a, Result<QuotaPermit, Box<QuotaExceeded>>> {
        let limits = self.limits_of_call(call);
        Box::pin(async move {
            match limits.is_empty() {
                true => Ok(QuotaPermit::default()),
                false => self.counters.take_call(&limits).await,
            }
        })
    }

    fn admit_model_use<'a>(
        &'a self,
        subject: QuotaSubject<'_>,
    ) -> BoxFuture<'a, Result<(), Box<QuotaExceeded>>> {
        let limits = self.limits_of_models(&subject);
        Box::pin(async move {
            for limited in &limits {
                let refusal = match self.counters.charge(&limited.counter).await {
                    Ok(wait) if wait.is_zero() => continue,
                    Ok(wait) => Refusal::used_up(wait),
                    Err(error) => Refusal::store_failed(&error),
                };
                return Err(self.counters.refuse(limited, refusal));
            }
            Ok(())
        })
    }

    fn charge_model_use<'a>(&'a self, subject: QuotaSubject<'_>, used: ModelUse) -> BoxFuture<'a, ()> {
        let limits = self.limits_of_models(&subject);
        // Counted at once, even if nobody waits for the store.
        for limited in &limits {
            let amount = match limited.limit {
                QuotaLimit::Money(_) => used.cost_micros,
                _ => used.tokens,
            };
            limited.counter.state().count_use(amount);
        }
        Box::pin(async move {
            for limited in &limits {
                let is_due = limited.counter.state().is_charge_due();
                if is_due && let Err(error) = self.counters.charge(&limited.counter).await {
                    tracing::warn!(quota = %limited.quota, %error, "failed to count model use in the store");
                }
            }
        })
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = timeout(SETTLE_TIMEOUT, self.counters.settle()).await;
        })
    }

    fn refusals(&self) -> Vec<(Arc<str>, u64)> {
        self.rules.iter().map(|rule| (Arc::clone(&rule.name), self.counters.refusals(&rule.name))).collect()
    }
}
