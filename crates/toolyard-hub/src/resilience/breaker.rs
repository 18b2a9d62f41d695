//! Circuit breaker: stops calls to a source after consecutive failures.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;
use toolyard_core::SourceId;

/// Upper bound on the open time, so that adding it to an `Instant` cannot overflow.
const MAX_OPEN_TIME: Duration = Duration::from_hours(365 * 24);

/// Circuit breaker settings.
#[derive(Debug, Clone, Copy)]
pub struct BreakerSettings {
    /// Consecutive failures that open it.
    pub failure_threshold: u32,
    /// First open time; it doubles with each failed probe.
    pub initial_open_time: Duration,
    /// Longest open time.
    pub max_open_time: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failure_threshold: 5,
            initial_open_time: Duration::from_secs(2),
            max_open_time: Duration::from_secs(30),
        }
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
        let severity = |state: &Self| match state {
            Self::Closed => (0, Duration::ZERO),
            Self::HalfOpen => (1, Duration::ZERO),
            Self::Open { retry_in } => (2, *retry_in),
        };
        if severity(&other) > severity(&self) { other } else { self }
    }
}

/// The breaker of one source, or of one native tool.
#[derive(Debug)]
pub(crate) struct Breaker {
    settings: BreakerSettings,
    source: SourceId,
    tool: Option<Arc<str>>,
    circuit: Mutex<CircuitState>,
}

#[derive(Debug, Clone, Copy)]
enum CircuitState {
    Closed { failures: u32 },
    Open { until: Instant, failed_probes: u32 },
    Probing { failed_probes: u32 },
}

/// Permission for one call. Dropping it without an outcome, as when a race is lost, counts as neither success nor failure.
#[derive(Debug)]
pub(crate) struct Permit {
    breaker: Arc<Breaker>,
    is_probe: bool,
    is_settled: bool,
}

impl Breaker {
    pub(crate) fn new(settings: BreakerSettings, source: SourceId, tool: Option<Arc<str>>) -> Self {
        Self { settings, source, tool, circuit: Mutex::new(CircuitState::Closed { failures: 0 }) }
    }

    /// A permit, or the time until the next probe; zero while a probe is running.
    pub(crate) fn admit(self: &Arc<Self>, now: Instant) -> Result<Permit, Duration> {
        let mut circuit = self.lock();
        let is_probe = match *circuit {
            CircuitState::Closed { .. } => false,
            CircuitState::Open { until, failed_probes } if until <= now => {
                *circuit = CircuitState::Probing { failed_probes };
                true
            }
            CircuitState::Open { until, .. } => return Err(until - now),
            CircuitState::Probing { .. } => return Err(Duration::ZERO),
        };
        drop(circuit);
        if is_probe {
            self.log_recovery("half_open", "circuit half-open: one call may probe");
        }
        Ok(Permit { breaker: Arc::clone(self), is_probe, is_settled: false })
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
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_time(&self, failed_probes: u32) -> Duration {
        self.settings
            .initial_open_time
            .saturating_mul(1 << failed_probes.min(16))
            .min(self.settings.max_open_time)
            .min(MAX_OPEN_TIME)
    }

    fn succeeded(&self) {
        let before = std::mem::replace(&mut *self.lock(), CircuitState::Closed { failures: 0 });
        if !matches!(before, CircuitState::Closed { .. }) {
            self.log_recovery("closed", "circuit closed: calls pass again");
        }
    }

    fn failed(&self, now: Instant, is_probe: bool) {
        let mut circuit = self.lock();
        let before = *circuit;
        let next = match before {
            CircuitState::Closed { failures } if failures + 1 >= self.settings.failure_threshold => {
                CircuitState::Open { until: now + self.open_time(0), failed_probes: 0 }
            }
            CircuitState::Closed { failures } => CircuitState::Closed { failures: failures + 1 },
            CircuitState::Probing { failed_probes } if is_probe => CircuitState::Open {
                until: now + self.open_time(failed_probes + 1),
                failed_probes: failed_probes + 1,
            },
            // A call that started before the circuit opened does not change it.
            unchanged @ (CircuitState::Open { .. } | CircuitState::Probing { .. }) => unchanged,
        };
        *circuit = next;
        drop(circuit);
        if let (
            CircuitState::Closed { .. } | CircuitState::Probing { .. },
            CircuitState::Open { failed_probes, .. },
        ) = (before, next)
        {
            let seconds = self.open_time(failed_probes).as_secs_f64();
            let (source, tool) = (self.source.as_str(), self.tool.as_deref());
            tracing::warn!(source, tool, state = "open", seconds, "circuit open after repeated failures");
        }
    }

    fn log_recovery(&self, state: &'static str, message: &'static str) {
        let (source, tool) = (self.source.as_str(), self.tool.as_deref());
        tracing::info!(source, tool, state, "{message}");
    }
}

impl Permit {
    /// The source responded.
    pub(crate) fn succeeded(mut self) {
        self.is_settled = true;
        self.breaker.succeeded();
    }

    /// The source failed.
    pub(crate) fn failed(mut self, now: Instant) {
        self.is_settled = true;
        self.breaker.failed(now, self.is_probe);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.is_probe && !self.is_settled {
            let mut circuit = self.breaker.lock();
            if let CircuitState::Probing { failed_probes } = *circuit {
                // The probe was cancelled: the next call may probe immediately.
                *circuit = CircuitState::Open { until: Instant::now(), failed_probes };
            }
        }
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
