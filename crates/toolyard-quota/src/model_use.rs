//! Quotas of tokens and money. What a model call uses is known only afterwards: it is counted then, and further calls are refused
//! once the limit is reached.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use toolyard_core::{BudgetChange, ModelUse, QuotaExceeded, QuotaSubject, StorageError, WindowLimit};

use crate::{
    call_share::{RETRY_INTERVAL, Refusal},
    counter::{Counter, CounterState},
    quota::Quota,
    quotas::{Inner, within_timeout},
    shared_calls::new_change,
};

impl Inner {
    /// The counters of all quotas of tokens and money that are about this use.
    pub(crate) fn model_counters(&self, subject: &QuotaSubject<'_>) -> Vec<(&Quota, Arc<Counter>)> {
        let now = Instant::now();
        let is_about = |quota: &&Quota| quota.rule.limits_model_use() && quota.rule.is_for(subject);
        let counter = |quota: &Quota| quota.counter(subject, None, now);
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
                match self.post(quota, counter, index, window).await {
                    Ok(wait) => wait,
                    Err(error) => {
                        let store_error = Some(error.to_string());
                        let refusal = Refusal { retry_after: RETRY_INTERVAL, store_error };
                        return Err(quota.refuse(limit, refusal));
                    }
                }
            } else {
                let now_millis = quota.millis(Instant::now());
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
        let now_millis = quota.millis(Instant::now());
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
            let has_unposted = counter.state().has_unposted(index);
            if let (Some((window, _)), true) = (limit, has_unposted)
                && let Err(error) = self.post(quota, counter, index, window).await
            {
                tracing::warn!(quota = %quota.rule.name, %error, "failed to count model use in the store");
            }
        }
    }

    /// Tells the store what was used; returns how long to wait until something is left.
    async fn post(
        &self,
        quota: &Quota,
        counter: &Counter,
        index: usize,
        limit: WindowLimit,
    ) -> Result<Duration, StorageError> {
        let Some(budget) = counter.model_budgets.get(index) else { return Ok(Duration::ZERO) };
        if !counter.state().has_unposted(index) {
            // No turn is needed to read.
            return Ok(self.change_budget(&new_change(quota, budget, limit)).await?.wait);
        }
        within_timeout(async {
            let _turn = counter.store_turn.lock().await;
            let mut wait = Duration::ZERO;
            // A change that is repeated is followed by one of what was used since.
            for _ in 0..2 {
                let change = counter.state().next_model_change(index, || new_change(quota, budget, limit));
                wait = self.change_budget(&BudgetChange { limit, ..change }).await?.wait;
                let mut state = counter.state();
                state.model_changes.get_mut(index).map(Option::take);
                if !state.has_unposted(index) {
                    break;
                }
            }
            Ok(wait)
        })
        .await
    }
}

impl CounterState {
    /// Whether the store does not know all that was used.
    fn has_unposted(&self, index: usize) -> bool {
        self.unposted.get(index).is_some_and(|amount| *amount > 0)
            || self.model_changes.get(index).is_some_and(Option::is_some)
    }

    /// The change that is not answered, else a new one with what was used since.
    fn next_model_change(&mut self, index: usize, new_change: impl FnOnce() -> BudgetChange) -> BudgetChange {
        let (Some(pending), Some(unposted)) =
            (self.model_changes.get_mut(index), self.unposted.get_mut(index))
        else {
            return new_change();
        };
        match pending {
            Some(change) => BudgetChange::clone(change),
            None => {
                let change = BudgetChange { charged: std::mem::take(unposted), ..new_change() };
                if !change.only_reads() {
                    *pending = Some(Box::new(change.clone()));
                }
                change
            }
        }
    }
}
