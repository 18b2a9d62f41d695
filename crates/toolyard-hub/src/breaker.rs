//! Leaves a source alone for a while after it failed several times in a row.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;
use toolyard_core::SourceId;

/// No pause is longer, whatever the settings say: an instant that far away can still be counted.
const LONGEST: Duration = Duration::from_hours(365 * 24);

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

impl BreakerState {
    /// Whichever of the two lets fewer calls pass.
    pub(crate) fn or_worse(self, other: Self) -> Self {
        let badness = |state: &Self| match state {
            Self::Closed => (0, Duration::ZERO),
            Self::HalfOpen => (1, Duration::ZERO),
            Self::Open { retry_in } => (2, *retry_in),
        };
        if badness(&other) > badness(&self) { other } else { self }
    }
}

/// The breaker of one source, or of one native tool.
#[derive(Debug)]
pub(crate) struct Breaker {
    settings: BreakerSettings,
    source: SourceId,
    tool: Option<Arc<str>>,
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
    pub(crate) fn new(settings: BreakerSettings, source: SourceId, tool: Option<Arc<str>>) -> Self {
        Self { settings, source, tool, inner: Mutex::new(Inner::Closed { failures: 0 }) }
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
        drop(inner);
        if probe {
            self.log_better("half_open", "one call may try");
        }
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
        self.settings.pause.saturating_mul(1 << trips.min(16)).min(self.settings.longest_pause).min(LONGEST)
    }

    fn succeeded(&self) {
        let before = std::mem::replace(&mut *self.lock(), Inner::Closed { failures: 0 });
        if !matches!(before, Inner::Closed { .. }) {
            self.log_better("closed", "calls pass again");
        }
    }

    fn failed(&self, now: Instant, probe: bool) {
        let mut inner = self.lock();
        let before = *inner;
        let next = match before {
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
        *inner = next;
        drop(inner);
        if let (Inner::Closed { .. } | Inner::Probing { .. }, Inner::Open { trips, .. }) = (before, next) {
            let seconds = self.pause(trips).as_secs_f64();
            let (source, tool) = (self.source.as_str(), self.tool.as_deref());
            tracing::warn!(source, tool, state = "open", seconds, "left alone after repeated failures");
        }
    }

    fn log_better(&self, state: &'static str, message: &'static str) {
        let (source, tool) = (self.source.as_str(), self.tool.as_deref());
        tracing::info!(source, tool, state, "{message}");
    }
}

impl Permit {
    /// The source answered, whatever the answer.
    pub(crate) fn succeeded(mut self) {
        self.settled = true;
        self.breaker.succeeded();
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
#[path = "breaker_tests.rs"]
mod tests;
