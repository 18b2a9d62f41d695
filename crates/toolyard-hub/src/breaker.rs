//! Leaves a source alone for a while after it failed several times in a row.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;

/// When a breaker opens and how long it stays so.
#[derive(Debug, Clone, Copy)]
pub struct BreakerSettings {
    /// Consecutive failures that open it.
    pub failures: u32,
    /// The first pause; it doubles with each failed probe.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_secs(2), longest_pause: Duration::from_secs(30) }
    }
}

/// What can be seen of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// Calls are refused until the pause is over.
    Open {
        /// How much of the pause is left.
        retry_in: Duration,
    },
    /// The pause is over: one call may try.
    HalfOpen,
}

/// The breaker of one source.
#[derive(Debug)]
pub(crate) struct Breaker {
    settings: BreakerSettings,
    inner: Mutex<Inner>,
}

#[derive(Debug, Clone, Copy)]
enum Inner {
    Closed { failures: u32 },
    Open { until: Instant, trips: u32 },
    Probing { trips: u32 },
}

/// The right to make one call. Dropped without a word, as when a race is lost, it counts for nothing.
#[derive(Debug)]
pub(crate) struct Permit {
    breaker: Arc<Breaker>,
    probe: bool,
    settled: bool,
}

impl Breaker {
    pub(crate) fn new(settings: BreakerSettings) -> Self {
        Self { settings, inner: Mutex::new(Inner::Closed { failures: 0 }) }
    }

    /// A permit, or how long the source is still left alone.
    pub(crate) fn admit(self: &Arc<Self>, now: Instant) -> Result<Permit, Duration> {
        let mut inner = self.lock();
        let probe = match *inner {
            Inner::Closed { .. } => false,
            Inner::Open { until, trips } if until <= now => {
                *inner = Inner::Probing { trips };
                true
            }
            Inner::Open { until, .. } => return Err(until - now),
            Inner::Probing { .. } => return Err(Duration::ZERO),
        };
        Ok(Permit { breaker: Arc::clone(self), probe, settled: false })
    }

    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        match *self.lock() {
            Inner::Closed { .. } => BreakerState::Closed,
            Inner::Open { until, .. } if until > now => BreakerState::Open { retry_in: until - now },
            Inner::Open { .. } | Inner::Probing { .. } => BreakerState::HalfOpen,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // The state is a plain value: whoever panicked while holding it cannot have left it half written.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self, trips: u32) -> Duration {
        self.settings.pause.saturating_mul(1 << trips.min(16)).min(self.settings.longest_pause)
    }

    fn failed(&self, now: Instant, probe: bool) {
        let mut inner = self.lock();
        *inner = match *inner {
            Inner::Closed { failures } if failures + 1 >= self.settings.failures => {
                Inner::Open { until: now + self.pause(0), trips: 0 }
            }
            Inner::Closed { failures } => Inner::Closed { failures: failures + 1 },
            Inner::Probing { trips } if probe => {
                Inner::Open { until: now + self.pause(trips + 1), trips: trips + 1 }
            }
            // A call that set out before the breaker opened: nothing new.
            same @ (Inner::Open { .. } | Inner::Probing { .. }) => same,
        };
    }
}

impl Permit {
    /// The source answered, whatever the answer.
    pub(crate) fn succeeded(mut self) {
        self.settled = true;
        *self.breaker.lock() = Inner::Closed { failures: 0 };
    }

    /// The source failed.
    pub(crate) fn failed(mut self, now: Instant) {
        self.settled = true;
        self.breaker.failed(now, self.probe);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.probe && !self.settled {
            let mut inner = self.breaker.lock();
            if let Inner::Probing { trips } = *inner {
                // The probe was cancelled: the next call may try at once.
                *inner = Inner::Open { until: Instant::now(), trips };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Arc<Breaker> {
        Arc::new(Breaker::new(BreakerSettings::default()))
    }

    async fn fail(breaker: &Arc<Breaker>, times: u32) {
        for _ in 0..times {
            breaker.admit(Instant::now()).unwrap().failed(Instant::now());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_on_consecutive_failures_only() {
        let breaker = breaker();
        fail(&breaker, 4).await;
        breaker.admit(Instant::now()).unwrap().succeeded();
        fail(&breaker, 4).await;
        assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
        fail(&breaker, 1).await;
        assert_eq!(breaker.state(Instant::now()), BreakerState::Open { retry_in: Duration::from_secs(2) });
        assert!(breaker.admit(Instant::now()).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn one_probe_at_a_time_and_longer_pauses_up_to_thirty_seconds() {
        let breaker = breaker();
        fail(&breaker, 5).await;
        for pause in [2, 4, 8, 16, 30, 30] {
            tokio::time::advance(Duration::from_secs(pause)).await;
            assert_eq!(breaker.state(Instant::now()), BreakerState::HalfOpen);
            let probe = breaker.admit(Instant::now()).unwrap();
            assert!(breaker.admit(Instant::now()).is_err(), "only one call may try");
            probe.failed(Instant::now());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_healed_source_is_back_after_one_probe() {
        let breaker = breaker();
        fail(&breaker, 5).await;
        tokio::time::advance(Duration::from_secs(2)).await;
        breaker.admit(Instant::now()).unwrap().succeeded();
        assert_eq!(breaker.state(Instant::now()), BreakerState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_probe_lets_the_next_call_try() {
        let breaker = breaker();
        fail(&breaker, 5).await;
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(breaker.admit(Instant::now()).unwrap());
        assert!(breaker.admit(Instant::now()).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_failure_does_not_prolong_the_pause() {
        let breaker = breaker();
        let late = breaker.admit(Instant::now()).unwrap();
        fail(&breaker, 5).await;
        tokio::time::advance(Duration::from_secs(1)).await;
        late.failed(Instant::now());
        assert_eq!(breaker.state(Instant::now()), BreakerState::Open { retry_in: Duration::from_secs(1) });
    }
}
