//! [`Counter`]: all that is counted together for one quota.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use toolyard_core::{BudgetChange, BudgetName, QuotaSubject, WindowUse};

use crate::{call_share::CallShare, counter_key::CounterKeyRef, permits::Permits, rule::QuotaRule};

/// The meters of language models: tokens, then money.
pub(crate) const MODEL_METERS: [&str; 2] = ["tokens", "money"];
const CALLS_METER: &str = "calls";
const PERMITS_METER: &str = "permits";

/// What is counted together.
#[derive(Debug)]
pub(crate) struct Counter {
    pub(crate) calls_budget: Arc<BudgetName>,
    pub(crate) permits_budget: Arc<BudgetName>,
    /// Tokens, then money.
    pub(crate) model_budgets: [Arc<BudgetName>; 2],
    state: Mutex<CounterState>,
    /// Held while the store is asked: one request at a time, and waiting calls share the answer.
    pub(crate) store_turn: tokio::sync::Mutex<()>,
}

/// What changes with every call. Without a store the windows are used, with a store the shares.
///
/// A change of a shared budget is kept here from before it is sent until the store has answered it. Whatever happens meanwhile (the
/// store fails or is too slow, the call is cancelled), the same change is sent again, and the store makes it once.
#[derive(Debug, Default)]
pub(crate) struct CounterState {
    pub(crate) calls: WindowUse,
    pub(crate) share: CallShare,
    /// The change of the budget of calls that the store has not answered.
    pub(crate) calls_change: Option<Box<BudgetChange>>,
    pub(crate) permits: Permits,
    /// Tokens, then money.
    pub(crate) model_use: [WindowUse; 2],
    /// What no change has yet.
    pub(crate) unposted: [u64; 2],
    /// The changes of the budgets of tokens and of money that the store has not answered.
    pub(crate) model_changes: [Option<Box<BudgetChange>>; 2],
}

impl Counter {
    pub(crate) fn new(rule: &QuotaRule, key: CounterKeyRef<'_>, subject: &QuotaSubject<'_>) -> Self {
        let description = key.describe(subject);
        let budget = |meter: &'static str, window_millis: u64| {
            Arc::new(BudgetName {
                key: key.hash_for(&rule.name, meter, window_millis),
                quota: Arc::clone(&rule.name),
                meter,
                subject: description.clone(),
            })
        };
        let millis = |limit: Option<toolyard_core::WindowLimit>| limit.map_or(0, |limit| limit.window_millis);
        let [tokens, money] = MODEL_METERS;
        Self {
            calls_budget: budget(CALLS_METER, millis(rule.calls)),
            permits_budget: budget(PERMITS_METER, 0),
            model_budgets: [budget(tokens, millis(rule.tokens)), budget(money, millis(rule.money))],
            state: Mutex::default(),
            store_turn: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, CounterState> {
        // Nothing panics between the changes of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing would be lost without this counter.
    pub(crate) fn is_idle(&self, rule: &QuotaRule, now: Instant, now_millis: u64) -> bool {
        let mut state = self.state();
        let CounterState { calls, share, calls_change, permits, model_use, unposted, model_changes } =
            &mut *state;
        let [tokens, money] = model_use;
        let mut is_unused = [(rule.calls, calls), (rule.tokens, tokens), (rule.money, money)]
            .into_iter()
            .map(|(limit, used)| limit.is_none_or(|limit| used.used(limit, now_millis) == 0));
        let is_answered = calls_change.is_none() && model_changes.iter().all(Option::is_none);
        is_answered
            && is_unused.all(|is_unused| is_unused)
            && permits.is_idle()
            && *unposted == [0, 0]
            && share.is_idle(now)
    }
}
