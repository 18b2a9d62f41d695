//! Asks the store for shares of calls and for permits, and gives back what is not used.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use toolyard_core::{BudgetChange, BudgetName, WindowLimit};

use crate::{call_share::Taking, counter::Counter, quota::Quota, quotas::Inner};

/// A change of a budget without anything to change, with the next number of this process.
pub(crate) fn new_change(quota: &Quota, budget: &Arc<BudgetName>, limit: WindowLimit) -> BudgetChange {
    static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
    BudgetChange {
        budget: Arc::clone(budget),
        limit,
        holder: quota.holder(),
        number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        wanted: 0,
        charged: 0,
        given_back: Vec::new(),
    }
}

impl Inner {
    /// Changes the budget of calls, in the caller's turn: sends the change that is not answered yet, else gives back what was not
    /// spent and asks for a share if that is for a call. Returns the slot of the call if its share has arrived, at most so much
    /// later than the end of that slot.
    pub(crate) async fn change_calls(
        &self,
        quota: &Quota,
        counter: &Counter,
        limit: WindowLimit,
        for_call: Option<Duration>,
    ) -> Option<u64> {
        let (change, is_repeated) = {
            let mut state = counter.state();
            match &state.calls_change {
                Some(change) => (BudgetChange { limit, ..BudgetChange::clone(change) }, true),
                None => {
                    let change = BudgetChange {
                        wanted: if for_call.is_some() { state.share.wanted(limit) } else { 0 },
                        given_back: state.share.take_unreturned(),
                        ..new_change(quota, &counter.calls_budget, limit)
                    };
                    if change.only_reads() {
                        return None;
                    }
                    state.calls_change = Some(Box::new(change.clone()));
                    (change, false)
                }
            }
        };
        let asked_at = Instant::now();
        let answer = self.change_budget(&change).await;
        let (mut state, now) = (counter.state(), Instant::now());
        match answer {
            Ok(budget) => {
                state.calls_change = None;
                if change.wanted > 0 {
                    state.share.add(asked_at, &budget);
                }
                // A grant that is returned again can be old.
                for_call.and_then(|lateness| {
                    state.share.take_late(now, if is_repeated { Duration::ZERO } else { lateness })
                })
            }
            Err(error) => {
                tracing::warn!(quota = %quota.rule.name, %error, "failed to ask the store for a share of a quota");
                state.share.store_failed(now, error.to_string());
                None
            }
        }
    }

    /// Asks for the permits of the calls that run, in the caller's turn, and for one more call if that is to start. Returns
    /// whether it started.
    pub(crate) async fn ask_for_permits(
        &self,
        quota: &Quota,
        counter: &Counter,
        limit: u64,
        is_for_call: bool,
    ) -> bool {
        let request = counter.state().permits.begin_request(is_for_call);
        let asked_at = Instant::now();
        let answer = self.hold_permits(quota, &counter.permits_budget, limit, request.wanted).await;
        let (mut state, now) = (counter.state(), Instant::now());
        match answer {
            Ok(held) => {
                state.permits.set_held(asked_at, now, &request, held);
                is_for_call && matches!(state.permits.take_held(now), Taking::Taken(_))
            }
            Err(error) => {
                tracing::warn!(quota = %quota.rule.name, %error, "failed to ask the store for permits of a quota");
                state.permits.store_failed(now, &request, &error);
                false
            }
        }
    }

    /// Gives an unspent share back, and repeats a change that is not answered.
    pub(crate) async fn keep_up_calls(&self, quota: &Quota, counter: &Counter) {
        let Some(limit) = quota.rule.calls else { return };
        let is_due = {
            let mut state = counter.state();
            state.calls_change.is_some() || state.share.has_unreturned(Instant::now())
        };
        if is_due {
            let _turn = counter.store_turn.lock().await;
            self.change_calls(quota, counter, limit, None).await;
        }
    }

    /// Gives unused permits back and renews the others.
    pub(crate) async fn keep_up_permits(&self, quota: &Quota, counter: &Counter) {
        let Some(limit) = quota.rule.concurrent_calls else { return };
        let is_due = || counter.state().permits.is_change_due(Instant::now());
        if is_due() {
            let _turn = counter.store_turn.lock().await;
            // Whoever had the turn before may have renewed them.
            if is_due() {
                self.ask_for_permits(quota, counter, limit, false).await;
            }
        }
    }
}
