//! [`CallAdmission`]: takes one call from all quotas that are about it, or from none.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use toolyard_core::{
    BudgetChange, QuotaCall, QuotaExceeded, QuotaLimit, QuotaPermit, WindowLimit, WindowUse,
};

use crate::{
    call_share::{RETRY_INTERVAL, Refusal, Taking},
    counter::Counter,
    quota::Quota,
    quotas::Inner,
};

/// How often a call asks the store before it is refused: a share can expire before a slow answer arrives, or others can take it.
const MAX_STORE_REQUESTS: u32 = 8;

/// A call and the counters of all quotas that are about it.
pub(crate) struct CallAdmission<'a> {
    inner: &'a Arc<Inner>,
    counters: Vec<(&'a Quota, Arc<Counter>)>,
}

/// What was taken so far. Permits are released on drop; calls are given back if the whole call is refused.
#[derive(Default)]
struct TakenSoFar {
    calls: Vec<(Arc<Counter>, u64)>,
    permits: Vec<HeldPermit>,
}

/// Ends a call when it is dropped.
struct HeldPermit(Arc<Counter>);

impl Drop for HeldPermit {
    fn drop(&mut self) {
        self.0.state().permits.release();
    }
}

type Admitted = Result<QuotaPermit, Box<QuotaExceeded>>;

impl<'a> CallAdmission<'a> {
    pub(crate) fn new(inner: &'a Arc<Inner>, call: &QuotaCall<'_>) -> Self {
        let mut counters: Vec<(&Quota, Arc<Counter>)> = Vec::new();
        let mut now = None;
        for quota in inner.quotas.iter().filter(|quota| quota.rule.limits_calls()) {
            if !quota.rule.is_for(&call.subject) {
                continue;
            }
            let start = counters.len();
            for tool in call.tools.iter().filter(|tool| quota.rule.is_for_tool(**tool)) {
                let now = *now.get_or_insert_with(Instant::now);
                let counter = quota.counter(&call.subject, Some(*tool), now, inner.millis(now));
                // Equivalent tools that are counted together are one call.
                let of_quota = counters.get(start..).unwrap_or_default();
                if !of_quota.iter().any(|(_, other)| Arc::ptr_eq(other, &counter)) {
                    counters.push((quota, counter));
                }
            }
        }
        Self { inner, counters }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// Takes the call if the store need not be asked.
    pub(crate) fn try_take(self) -> Result<Admitted, Self> {
        let (mut taken, now) = (TakenSoFar::default(), Instant::now());
        for (quota, counter) in &self.counters {
            match self.try_counter(quota, counter, now, &mut taken) {
                Ok(true) => {}
                Ok(false) => {
                    self.give_back(&taken);
                    return Err(self);
                }
                Err(exceeded) => {
                    self.give_back(&taken);
                    return Ok(Err(exceeded));
                }
            }
        }
        Ok(Ok(taken.into_permit()))
    }

    /// Takes the call, and asks the store for shares where they are used up.
    pub(crate) async fn take(self) -> Admitted {
        let mut taken = TakenSoFar::default();
        for (quota, counter) in &self.counters {
            if let Err(exceeded) = self.take_counter(quota, counter, &mut taken).await {
                self.give_back(&taken);
                return Err(exceeded);
            }
        }
        Ok(taken.into_permit())
    }

    async fn take_counter(
        &self,
        quota: &Quota,
        counter: &Arc<Counter>,
        taken: &mut TakenSoFar,
    ) -> Result<(), Box<QuotaExceeded>> {
        for _ in 0..MAX_STORE_REQUESTS {
            if self.try_counter(quota, counter, Instant::now(), taken)? {
                return Ok(());
            }
            let _turn = counter.store_turn.lock().await;
            // Whoever had the turn before may have brought enough for this call.
            if self.try_counter(quota, counter, Instant::now(), taken)? {
                return Ok(());
            }
            self.inner.ask_store(quota, counter).await;
        }
        if self.try_counter(quota, counter, Instant::now(), taken)? {
            return Ok(());
        }
        let limit = quota.rule.calls.map_or(QuotaLimit::ConcurrentCalls(0), QuotaLimit::Calls);
        let error = "its answers take longer than a share of this quota lasts".to_owned();
        Err(quota.refuse(limit, Refusal { retry_after: RETRY_INTERVAL, store_error: Some(error) }))
    }

    /// Takes the call from one counter: a permit, then a call. False if the store must be asked; then neither is taken.
    fn try_counter(
        &self,
        quota: &Quota,
        counter: &Arc<Counter>,
        now: Instant,
        taken: &mut TakenSoFar,
    ) -> Result<bool, Box<QuotaExceeded>> {
        let mut state = counter.state();
        let is_shared = self.inner.is_shared();
        if let Some(limit) = quota.rule.concurrent_calls {
            let permit = match is_shared {
                true => state.permits.take_held(now),
                false => state.permits.take_local(limit),
            };
            match permit {
                Taking::Taken(_) => {}
                Taking::AskStore => return Ok(false),
                Taking::Refused(refusal) => {
                    return Err(quota.refuse(QuotaLimit::ConcurrentCalls(limit), refusal));
                }
            }
        }
        let call = match quota.rule.calls {
            None => Taking::Taken(0),
            Some(_) if is_shared => state.share.take(now),
            Some(limit) => take_local(&mut state.calls, limit, self.inner.millis(now)),
        };
        if !matches!(call, Taking::Taken(_)) && quota.rule.concurrent_calls.is_some() {
            state.permits.release();
        }
        drop(state);
        match (call, quota.rule.calls) {
            (Taking::AskStore, _) => Ok(false),
            (Taking::Refused(refusal), Some(limit)) => Err(quota.refuse(QuotaLimit::Calls(limit), refusal)),
            (Taking::Taken(slot), limit) => {
                if quota.rule.concurrent_calls.is_some() {
                    taken.permits.push(HeldPermit(Arc::clone(counter)));
                }
                if limit.is_some() {
                    taken.calls.push((Arc::clone(counter), slot));
                }
                Ok(true)
            }
            // Only limited calls are refused.
            (Taking::Refused(_), None) => Ok(true),
        }
    }

    fn give_back(&self, taken: &TakenSoFar) {
        for (counter, slot) in &taken.calls {
            let mut state = counter.state();
            match self.inner.is_shared() {
                true => state.share.give_back(*slot),
                false => state.calls.give_back(*slot, 1),
            }
        }
    }
}

impl TakenSoFar {
    fn into_permit(self) -> QuotaPermit {
        match self.permits.is_empty() {
            true => QuotaPermit::default(),
            false => QuotaPermit::holding(self.permits),
        }
    }
}

fn take_local(used: &mut WindowUse, limit: WindowLimit, now_millis: u64) -> Taking {
    if used.take(limit, now_millis, 1) == 1 {
        return Taking::Taken(used.current_slot(limit, now_millis));
    }
    let retry_after = Duration::from_millis(used.wait_millis(limit, now_millis));
    Taking::Refused(Refusal { retry_after, store_error: None })
}

impl Inner {
    /// Asks the store for what a call lacks: permits, a share of calls, or both.
    async fn ask_store(&self, quota: &Quota, counter: &Counter) {
        let (now, mut wanted_permits, mut wanted_calls) = (Instant::now(), None, None);
        {
            let mut state = counter.state();
            if let Some(limit) = quota.rule.concurrent_calls
                && state.permits.must_ask(now)
            {
                wanted_permits = Some((limit, state.permits.wanted_for_call()));
            }
            if let Some(limit) = quota.rule.calls
                && wanted_permits.is_none()
                && state.share.must_ask(now)
            {
                let (wanted, given_back) = (state.share.wanted(limit), state.share.take_unreturned());
                let budget = Arc::clone(&counter.calls_budget);
                wanted_calls = Some(BudgetChange { budget, limit, wanted, charged: 0, given_back });
            }
        }
        if let Some((limit, wanted)) = wanted_permits {
            self.set_permits(counter, limit, wanted).await;
        }
        if let Some(change) = wanted_calls {
            self.change_calls(counter, change).await;
        }
    }

    async fn change_calls(&self, counter: &Counter, change: BudgetChange) {
        let asked_at = Instant::now();
        let answer = self.change_budget(&change).await;
        let mut state = counter.state();
        match answer {
            Ok(budget) if change.wanted > 0 => state.share.add(asked_at, &budget),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(quota = %change.budget.quota, %error, "failed to ask the store for a share of a quota");
                state.share.store_failed(Instant::now(), change.given_back, error.to_string());
            }
        }
    }

    async fn set_permits(&self, counter: &Counter, limit: u64, wanted: u64) {
        let asked_at = Instant::now();
        let answer = self.hold_permits(counter.permits_key, limit, wanted).await;
        let now = Instant::now();
        let mut state = counter.state();
        match answer {
            Ok(held) => state.permits.set_held(asked_at, now, wanted, held),
            Err(error) => {
                tracing::warn!(%error, "failed to ask the store for permits of a quota");
                state.permits.store_failed(now, error.to_string());
            }
        }
    }

    /// Gives an unspent share back.
    pub(crate) async fn keep_up_calls(&self, quota: &Quota, counter: &Counter) {
        let Some(limit) = quota.rule.calls else { return };
        let given_back = {
            let mut state = counter.state();
            if !state.share.has_unreturned(Instant::now()) {
                return;
            }
            state.share.take_unreturned()
        };
        let budget = Arc::clone(&counter.calls_budget);
        self.change_calls(counter, BudgetChange { budget, limit, wanted: 0, charged: 0, given_back }).await;
    }

    /// Gives unused permits back and renews the others.
    pub(crate) async fn keep_up_permits(&self, quota: &Quota, counter: &Counter) {
        let Some(limit) = quota.rule.concurrent_calls else { return };
        if !counter.state().permits.is_change_due(Instant::now()) {
            return;
        }
        let _turn = counter.store_turn.lock().await;
        let wanted = counter.state().permits.give_up_unused();
        self.set_permits(counter, limit, wanted).await;
    }
}
