//! [`CallAdmission`]: takes one call from all quotas that are about it, or from none.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use toolyard_core::{QuotaCall, QuotaExceeded, QuotaLimit, QuotaPermit, WindowLimit, WindowUse};

use crate::{
    call_share::{RETRY_INTERVAL, Refusal, Taking},
    counter::{Counter, CounterState},
    quota::Quota,
    quotas::Inner,
};

/// How often a call asks the store before it is refused: a share can expire before a slow answer arrives, or others can take it.
const MAX_STORE_REQUESTS: u32 = 8;
/// Slots of short windows can be shorter than the store takes to answer. If a second grant in a row arrives after the end of its
/// slot, the call that asked for it is made all the same, up to this fraction of the window after that end.
const MAX_LATENESS_FRACTION: u32 = 10;

/// A call and the counters of all quotas that are about it.
pub(crate) struct CallAdmission<'a> {
    inner: &'a Arc<Inner>,
    counters: Vec<(&'a Quota, Arc<Counter>)>,
}

/// What was taken so far. It is given back on drop, unless the call was admitted: a refused or cancelled call counts for none.
struct TakenSoFar {
    is_shared: bool,
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
                let counter = quota.counter(&call.subject, Some(*tool), now);
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
        let (mut taken, now) = (TakenSoFar::new(self.inner.is_shared()), Instant::now());
        for (quota, counter) in &self.counters {
            match self.try_counter(quota, counter, now, &mut taken) {
                Ok(true) => {}
                Ok(false) => return Err(self),
                Err(exceeded) => return Ok(Err(exceeded)),
            }
        }
        Ok(Ok(taken.into_permit()))
    }

    /// Takes the call, and asks the store for shares where they are used up.
    pub(crate) async fn take(self) -> Admitted {
        let mut taken = TakenSoFar::new(self.inner.is_shared());
        for (quota, counter) in &self.counters {
            let permit = match quota.rule.concurrent_calls {
                Some(limit) => Some(self.take_permit(quota, counter, limit).await?),
                None => None,
            };
            if let Some(limit) = quota.rule.calls {
                let slot = self.take_call(quota, counter, limit).await?;
                taken.calls.push((Arc::clone(counter), slot));
            }
            taken.permits.extend(permit);
        }
        Ok(taken.into_permit())
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
        if let Some(limit) = quota.rule.concurrent_calls {
            let permit = self.permit(&mut state, limit, now);
            if taken_slot(quota, QuotaLimit::ConcurrentCalls(limit), permit)?.is_none() {
                return Ok(false);
            }
        }
        let slot = quota.rule.calls.map(|limit| {
            taken_slot(quota, QuotaLimit::Calls(limit), self.call(quota, &mut state, limit, now))
        });
        if !matches!(slot, None | Some(Ok(Some(_)))) && quota.rule.concurrent_calls.is_some() {
            state.permits.release();
        }
        drop(state);
        match slot.transpose()? {
            Some(None) => return Ok(false),
            Some(Some(slot)) => taken.calls.push((Arc::clone(counter), slot)),
            None => {}
        }
        if quota.rule.concurrent_calls.is_some() {
            taken.permits.push(HeldPermit(Arc::clone(counter)));
        }
        Ok(true)
    }

    async fn take_permit(
        &self,
        quota: &Quota,
        counter: &Arc<Counter>,
        limit: u64,
    ) -> Result<HeldPermit, Box<QuotaExceeded>> {
        let limits = QuotaLimit::ConcurrentCalls(limit);
        let try_permit =
            || taken_slot(quota, limits, self.permit(&mut counter.state(), limit, Instant::now()));
        for _ in 0..MAX_STORE_REQUESTS {
            if try_permit()?.is_some() {
                return Ok(HeldPermit(Arc::clone(counter)));
            }
            let _turn = counter.store_turn.lock().await;
            // Whoever had the turn before may have brought enough for this call.
            if try_permit()?.is_some() || self.inner.ask_for_permits(quota, counter, limit, true).await {
                return Ok(HeldPermit(Arc::clone(counter)));
            }
        }
        Err(quota.refuse(limits, Refusal { retry_after: RETRY_INTERVAL, store_error: None }))
    }

    async fn take_call(
        &self,
        quota: &Quota,
        counter: &Counter,
        limit: WindowLimit,
    ) -> Result<u64, Box<QuotaExceeded>> {
        let limits = QuotaLimit::Calls(limit);
        let try_call =
            || taken_slot(quota, limits, self.call(quota, &mut counter.state(), limit, Instant::now()));
        for attempt in 0..MAX_STORE_REQUESTS {
            if let Some(slot) = try_call()? {
                return Ok(slot);
            }
            let _turn = counter.store_turn.lock().await;
            // Whoever had the turn before may have brought enough for this call.
            if let Some(slot) = try_call()? {
                return Ok(slot);
            }
            let lateness = match attempt {
                // A grant of a slot that has just begun is in time, unless the slots are too short.
                0 => Duration::ZERO,
                _ => limit.window() / MAX_LATENESS_FRACTION,
            };
            if let Some(slot) = self.inner.change_calls(quota, counter, limit, Some(lateness)).await {
                return Ok(slot);
            }
        }
        let error = "its answers take longer than a share of this quota lasts".to_owned();
        Err(quota.refuse(limits, Refusal { retry_after: RETRY_INTERVAL, store_error: Some(error) }))
    }

    fn permit(&self, state: &mut CounterState, limit: u64, now: Instant) -> Taking {
        match self.inner.is_shared() {
            true => state.permits.take_held(now),
            false => state.permits.take_local(limit),
        }
    }

    fn call(&self, quota: &Quota, state: &mut CounterState, limit: WindowLimit, now: Instant) -> Taking {
        match self.inner.is_shared() {
            true => state.share.take(now),
            false => take_local(&mut state.calls, limit, quota.millis(now)),
        }
    }
}

/// The slot in which something was taken; `None` if the store must be asked.
fn taken_slot(quota: &Quota, limit: QuotaLimit, taking: Taking) -> Result<Option<u64>, Box<QuotaExceeded>> {
    match taking {
        Taking::Taken(slot) => Ok(Some(slot)),
        Taking::AskStore => Ok(None),
        Taking::Refused(refusal) => Err(quota.refuse(limit, refusal)),
    }
}

impl TakenSoFar {
    fn new(is_shared: bool) -> Self {
        Self { is_shared, calls: Vec::new(), permits: Vec::new() }
    }

    fn into_permit(mut self) -> QuotaPermit {
        self.calls.clear();
        let permits = std::mem::take(&mut self.permits);
        match permits.is_empty() {
            true => QuotaPermit::default(),
            false => QuotaPermit::holding(permits),
        }
    }
}

impl Drop for TakenSoFar {
    fn drop(&mut self) {
        for (counter, slot) in &self.calls {
            let mut state = counter.state();
            match self.is_shared {
                true => state.share.give_back(*slot),
                false => state.calls.give_back(*slot, 1),
            }
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
