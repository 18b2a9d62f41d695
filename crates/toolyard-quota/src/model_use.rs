//! Quotas of tokens and money. What a model call uses is known only afterwards: it is counted then, and further calls are refused
//! once the limit is reached.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use toolyard_core::{BudgetChange, ModelUse, QuotaExceeded, QuotaSubject};

use crate::{
    call_share::{RETRY_INTERVAL, Refusal},
    counter::{Counter, CounterState},
    quota::Quota,
    quotas::Inner,
};

impl Inner {
    /// The counters of all quotas of tokens and money that are about this use.
    pub(crate) fn model_counters(&self, subject: &QuotaSubject<'_>) -> Vec<(&Quota, Arc<Counter>)> {
        let now = Instant::now();
        let is_about = |quota: &&Quota| quota.rule.limits_model_use() && quota.rule.is_for(subject);
        let counter = |quota: &Quota| quota.counter(subject, None, now, self.millis(now));
        self.quotas.iter().filter(is_about).map(|quota| (quota, counter(quota))).collect()
    }

    pub(crate) async fn admit_model_use(
        &self,
        quota: &Quota,
        counter: &Counter,
    ) -> Result<(), Box<QuotaExceeded>> {
        for (index, limit) in quota.rule.model_limits().into_iter().enumerate() {
            let Some((window, limit)) = limit else { continue };
            let wait = if self.is_shared() {
                match self.post(counter, index, window).await {
                    Ok(wait) => wait,
                    Err(error) => {
                        let refusal = Refusal { retry_after: RETRY_INTERVAL, store_error: Some(error) };
                        return Err(quota.refuse(limit, refusal));
                    }
                }
            } else {
                let now_millis = self.millis(Instant::now());
                let mut state = counter.state();
                let wait = state.model_use.get_mut(index).map(|used| used.wait_millis(window, now_millis));
                Duration::from_millis(wait.unwrap_or_default())
            };
            if !wait.is_zero() {
                return Err(quota.refuse(limit, Refusal { retry_after: wait, store_error: None }));
            }
        }
        Ok(())
    }

    pub(crate) fn count_model_use(&self, quota: &Quota, counter: &Counter, used: ModelUse) {
        let now_millis = self.millis(Instant::now());
        let mut state = counter.state();
        let CounterState { model_use, unposted, .. } = &mut *state;
        let amounts = [used.tokens, used.cost_micros];
        let meters = model_use.iter_mut().zip(unposted).zip(amounts).zip(quota.rule.model_limits());
        for (((in_window, unposted), amount), limit) in meters {
            match limit {
                Some(_) if self.is_shared() => *unposted = unposted.saturating_add(amount),
                Some((window, _)) => in_window.charge(window, now_millis, amount),
                None => {}
            }
        }
    }

    /// Tells the store what was used; what it does not accept now is sent again later.
    pub(crate) async fn post_model_use(&self, quota: &Quota, counter: &Counter) {
        for (index, limit) in quota.rule.model_limits().into_iter().enumerate() {
            let is_unposted = counter.state().unposted.get(index).is_some_and(|amount| *amount > 0);
            if let (Some((window, _)), true) = (limit, is_unposted)
                && let Err(error) = self.post(counter, index, window).await
            {
                tracing::warn!(quota = %quota.rule.name, error, "failed to count model use in the store");
            }
        }
    }

    /// Tells the store what was used; returns how long to wait until something is left.
    async fn post(
        &self,
        counter: &Counter,
        index: usize,
        limit: toolyard_core::WindowLimit,
    ) -> Result<Duration, String> {
        let Some(budget) = counter.model_budgets.get(index).map(Arc::clone) else {
            return Ok(Duration::ZERO);
        };
        let charged = counter.state().unposted.get_mut(index).map(std::mem::take).unwrap_or_default();
        let change = BudgetChange { budget, limit, wanted: 0, charged, given_back: Vec::new() };
        match self.change_budget(&change).await {
            Ok(state) => Ok(state.wait),
            Err(error) => {
                if let Some(unposted) = counter.state().unposted.get_mut(index) {
                    *unposted = unposted.saturating_add(charged);
                }
                Err(error.to_string())
            }
        }
    }
}
