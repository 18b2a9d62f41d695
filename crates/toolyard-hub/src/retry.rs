//! How often and how soon a failed call is tried again, and the budget that keeps retries from becoming a flood.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// How a call that may be repeated is repeated.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The pause before the second attempt is at most this; it doubles from there.
    pub pause: Duration,
    /// No pause is longer.
    pub longest_pause: Duration,
    /// How long one attempt at a tool that may be repeated can take at most. Without it an attempt may use up the
    /// call's whole time, and a timeout leaves none for another.
    pub attempt_timeout: Option<Duration>,
}

/// No pause is longer, whatever the policy says.
const LONGEST: Duration = Duration::from_hours(24);

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(5),
            attempt_timeout: None,
        }
    }
}

impl RetryPolicy {
    /// The pause after `attempt` failed; `chance` in 0..1 spreads those who failed together.
    pub fn pause_after(&self, attempt: u32, chance: f64) -> Duration {
        let doubled = self.pause.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        doubled.min(self.longest_pause).min(LONGEST).mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
    }
}

/// What one call earns, in thousandths of a retry: ten calls pay for one.
const EARNED: u64 = 100;
/// What one retry costs.
const COST: u64 = 1_000;
/// What a source starts with, so that the first calls after a start may be repeated too.
const RESERVE: u64 = 10 * COST;
/// No more is saved than this.
const MOST: u64 = 100 * COST;

/// One source's budget: at most ten retries, and one more for every ten calls.
#[derive(Debug)]
pub(crate) struct RetryBudget(AtomicU64);

impl Default for RetryBudget {
    fn default() -> Self {
        Self(AtomicU64::new(RESERVE))
    }
}

impl RetryBudget {
    /// A call was made.
    pub(crate) fn earn(&self) {
        self.update(|balance| Some((balance + EARNED).min(MOST)));
    }

    /// Whether a retry can be paid for; if so, it is.
    pub(crate) fn pay(&self) -> bool {
        self.update(|balance| balance.checked_sub(COST))
    }

    fn update(&self, change: impl FnMut(u64) -> Option<u64>) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pauses_double_and_are_spread() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.pause_after(1, 1.0), Duration::from_millis(200));
        assert_eq!(policy.pause_after(2, 1.0), Duration::from_millis(400));
        assert_eq!(policy.pause_after(2, 0.0), Duration::from_millis(200));
        assert_eq!(policy.pause_after(30, 1.0), Duration::from_secs(5));
        let endless = RetryPolicy { pause: Duration::MAX, longest_pause: Duration::MAX, ..policy };
        assert_eq!(endless.pause_after(3, 1.0), Duration::from_hours(24), "and no panic");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Whatever the order of calls and wishes to retry, extra traffic stays within a tenth and the reserve.
        #[test]
        fn extra_traffic_is_bounded(wishes in proptest::collection::vec(any::<bool>(), 0..500)) {
            let budget = RetryBudget::default();
            let (mut calls, mut retries) = (0_u64, 0_u64);
            for wish in wishes {
                if wish { retries += u64::from(budget.pay()) } else { budget.earn(); calls += 1 }
            }
            prop_assert!(retries <= 10 + calls / 10);
        }
    }
}
