//! Circuit breaker: stops calls to a source after consecutive failures.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;
use toolyard_core::SourceId;

/// Upper bound on the open time, so that adding it to an `Instant` cannot overflow.
const MAX_BREAK: Duration = Duration::from_hours(365 * 24);

/// Circuit breaker settings.
#[derive(Debug, Clone, Copy)]
pub struct BreakerSettings {
    /// Consecutive failures that open it.
    pub failures: u32,
    /// First open time; it doubles with each failed probe.
    pub pause: Duration,
    /// Longest open time.
    pub longest_pause: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_secs(2), longest_pause: Duration::from_secs(30) }
    }
}

/// Observable state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// Calls are refused.
    Open {
        /// Remaining open time.
        retry_in: Duration,
    },
    /// One call may probe the source.
    HalfOpen,
}

impl BreakerState {
    /// The more restrictive of two states.
    pub(crate) fn worse_of(self, other: Self) -> Self {
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
    inner: Mutex<CircuitState>,
}

#[derive(Debug, Clone, Copy)]
enum CircuitState {
    Closed { failures: u32 },
    Open { until: Instant, trips: u32 },
    Probing { trips: u32 },
}

/// Permission for one call. Dropping it without an outcome, as when a race is lost, counts as neither success nor failure.
#[derive(Debug)]
pub(crate) struct Permit {
    breaker: Arc<Breaker>,
    probe: bool,
    settled: bool,
}

impl Breaker {
    pub(crate) fn new(settings: BreakerSettings, source: SourceId, tool: Option<Arc<str>>) -> Self {
        Self { settings, source, tool, inner: Mutex::new(CircuitState::Closed { failures: 0 }) }
    }

    /// A permit, or the remaining open time.
    pub(crate) fn admit(self: &Arc<Self>, now: Instant) -> Result<Permit, Duration> {
        let mut inner = self.lock();
        let probe = match *inner {
            CircuitState::Closed { .. } => false,
            CircuitState::Open { until, trips } if until <= now => {
                *inner = CircuitState::Probing { trips };
                true
            }
            CircuitState::Open { until, .. } => return Err(until - now),
            CircuitState::Probing { .. } => return Err(Duration::ZERO),
        };
        drop(inner);
        if probe {
            self.log_better("half_open", "circuit half-open: one call may probe");
        }
        Ok(Permit { breaker: Arc::clone(self), probe, settled: false })
    }

    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        match *self.lock() {
            CircuitState::Closed { .. } => BreakerState::Closed,
            CircuitState::Open { until, .. } if until > now => BreakerState::Open { retry_in: until - now },
            CircuitState::Open { .. } | CircuitState::Probing { .. } => BreakerState::HalfOpen,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CircuitState> {
        // The state is a plain value that a panic cannot leave half-written.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self, trips: u32) -> Duration {
        self.settings.pause.saturating_mul(1 << trips.min(16)).min(self.settings.longest_pause).min(MAX_BREAK)
    }

    fn succeeded(&self) {
        let before = std::mem::replace(&mut *self.lock(), CircuitState::Closed { failures: 0 });
        if !matches!(before, CircuitState::Closed { .. }) {
            self.log_better("closed", "circuit closed: calls pass again");
        }
    }

    fn failed(&self, now: Instant, probe: bool) {
        let mut inner = self.lock();
        let before = *inner;
        let next = match before {
            CircuitState::Closed { failures } if failures + 1 >= self.settings.failures => {
                CircuitState::Open { until: now + self.pause(0), trips: 0 }
            }
            CircuitState::Closed { failures } => CircuitState::Closed { failures: failures + 1 },
            CircuitState::Probing { trips } if probe => {
                CircuitState::Open { until: now + self.pause(trips + 1), trips: trips + 1 }
            }
            // A call that started before the breaker opened.
            same @ (CircuitState::Open { .. } | CircuitState::Probing { .. }) => same,
        };
        *inner = next;
        drop(inner);
        if let (
            CircuitState::Closed { .. } | CircuitState::Probing { .. },
            CircuitState::Open { trips, .. },
        ) = (before, next)
        {
            let seconds = self.pause(trips).as_secs_f64();
            let (source, tool) = (self.source.as_str(), self.tool.as_deref());
            tracing::warn!(source, tool, state = "open", seconds, "circuit open after repeated failures");
        }
    }

    fn log_better(&self, state: &'static str, message: &'static str) {
        let (source, tool) = (self.source.as_str(), self.tool.as_deref());
        tracing::info!(source, tool, state, "{message}");
    }
}

impl Permit {
    /// The source responded.
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
            if let CircuitState::Probing { trips } = *inner {
                // The probe was cancelled: the next call may probe immediately.
                *inner = CircuitState::Open { until: Instant::now(), trips };
            }
        }
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
