//! Retry policy and the retry budget that keeps retries from multiplying load.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// How a call is retried that is safe to repeat, or of which nothing was sent.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Total attempts, including the first.
    pub max_attempts: u32,
    /// Maximum backoff before the second attempt; doubles for each further one.
    pub initial_backoff: Duration,
    /// Maximum backoff.
    pub max_backoff: Duration,
    /// Timeout of one attempt to call a repeatable tool. Without it, an attempt may use up the whole time of the call and
    /// leave none for a retry.
    pub attempt_timeout: Option<Duration>,
}

/// Upper bound on any backoff, whatever the policy says.
const MAX_BACKOFF: Duration = Duration::from_hours(24);

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            // One retry for a connection that broke, one more for a server that restarts.
            max_attempts: 3,
            initial_backoff: Duration::from_millis(200),
            max_backoff: Duration::from_secs(5),
            attempt_timeout: None,
        }
    }
}

impl RetryPolicy {
    /// Backoff after attempt number `attempt` (from 1) failed. `jitter` from 0 to 1 scales it from half to the whole.
    pub fn backoff_after(&self, attempt: u32, jitter: f64) -> Duration {
        let doubled = self.initial_backoff.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        doubled.min(self.max_backoff).min(MAX_BACKOFF).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
    }
}

/// Tokens earned per call: ten calls pay for one retry.
const TOKENS_PER_CALL: u64 = 100;
const TOKENS_PER_RETRY: u64 = 1_000;
/// Initial tokens, so that the first calls after a start can be retried.
const INITIAL_TOKENS: u64 = 10 * TOKENS_PER_RETRY;
const MAX_TOKENS: u64 = 100 * TOKENS_PER_RETRY;

/// Retry budget of one source: ten retries, and one more for every ten calls.
#[derive(Debug)]
pub(crate) struct RetryBudget(AtomicU64);

impl Default for RetryBudget {
    fn default() -> Self {
        Self(AtomicU64::new(INITIAL_TOKENS))
    }
}

impl RetryBudget {
    /// Adds the tokens of one call.
    pub(crate) fn deposit(&self) {
        self.update(|balance| Some((balance + TOKENS_PER_CALL).min(MAX_TOKENS)));
    }

    /// Spends the tokens of one retry; returns false if there are too few.
    pub(crate) fn withdraw(&self) -> bool {
        self.update(|balance| balance.checked_sub(TOKENS_PER_RETRY))
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
    fn pauses_double_and_have_jitter() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.backoff_after(1, 1.0), Duration::from_millis(200));
        assert_eq!(policy.backoff_after(2, 1.0), Duration::from_millis(400));
        assert_eq!(policy.backoff_after(2, 0.0), Duration::from_millis(200));
        assert_eq!(policy.backoff_after(30, 1.0), Duration::from_secs(5));
        let endless = RetryPolicy { initial_backoff: Duration::MAX, max_backoff: Duration::MAX, ..policy };
        assert_eq!(endless.backoff_after(3, 1.0), Duration::from_hours(24), "an overflow is capped");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// In any order of calls and retries, retries stay within a tenth of the calls plus the reserve of 10.
        #[test]
        fn extra_traffic_is_bounded(retry_requests in proptest::collection::vec(any::<bool>(), 0..500)) {
            let budget = RetryBudget::default();
            let (mut calls, mut retries) = (0_u64, 0_u64);
            for is_retry in retry_requests {
                if is_retry { retries += u64::from(budget.withdraw()) } else { budget.deposit(); calls += 1 }
            }
            prop_assert!(retries <= 10 + calls / 10);
        }
    }
}
