//! Circuit breaker: stops calls to a source after consecutive failures. While only calls of one caller failed, it stops
//! the calls of that caller: the others may be calling something that works.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;
use toolyard_core::SourceId;

/// Upper bound on the open time, so that adding it to an `Instant` cannot overflow.
const MAX_OPEN_TIME: Duration = Duration::from_hours(365 * 24);

/// Circuit breaker settings.
#[derive(Debug, Clone, Copy, PartialEq)]
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
            // More than a call and its retries: one unlucky call stops nothing.
            failure_threshold: 5,
            initial_open_time: Duration::from_secs(2),
            // Short, so that a source is used again soon after its return: a probe is only one call.
            max_open_time: Duration::from_secs(4),
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
    circuit: Mutex<Circuit>,
}

#[derive(Debug)]
struct Circuit {
    state: CircuitState,
    /// How often the source responded or reported that it is ready.
    responses: u64,
    failed_callers: FailedCallers,
}

/// Whose calls failed since the source responded last.
#[derive(Debug)]
enum FailedCallers {
    None,
    One(Arc<str>),
    Several,
}

impl FailedCallers {
    fn add(&mut self, caller: &str) {
        match self {
            Self::None => *self = Self::One(caller.into()),
            Self::One(known) if **known != *caller => *self = Self::Several,
            Self::One(_) | Self::Several => {}
        }
    }

    fn is_only_another(&self, caller: &str) -> bool {
        matches!(self, Self::One(known) if **known != *caller)
    }
}

#[derive(Debug, Clone, Copy)]
enum CircuitState {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
        failed_probes: u32,
        /// Set after a probe that ended without an outcome: the circuit is already logged as half-open.
        is_half_open: bool,
    },
    /// A probe is running. Another one may start at `next_probe_at`, because the first may wait for a response that was lost.
    Probing {
        failed_probes: u32,
        next_probe_at: Instant,
    },
}

/// Permission for one call. Dropping it without an outcome, as when a race is lost, counts as neither success nor failure.
#[derive(Debug)]
pub(crate) struct Permit {
    breaker: Arc<Breaker>,
    is_probe: bool,
    is_settled: bool,
    /// The responses of the source before this call.
    responses_before: u64,
}

impl Breaker {
    pub(crate) fn new(settings: BreakerSettings, source: SourceId, tool: Option<Arc<str>>) -> Self {
        let circuit = Circuit {
            state: CircuitState::Closed { failures: 0 },
            responses: 0,
            failed_callers: FailedCallers::None,
        };
        Self { settings, source, tool, circuit: Mutex::new(circuit) }
    }

    /// A permit, or the time until the next probe; zero while a probe is running.
    pub(crate) fn admit(self: &Arc<Self>, now: Instant, caller: &str) -> Result<Permit, Duration> {
        let mut circuit = self.lock();
        let before = circuit.state;
        let is_probe = match before {
            CircuitState::Closed { .. } => false,
            _ if circuit.failed_callers.is_only_another(caller) => false,
            CircuitState::Open { until: probe_at, failed_probes, .. }
            | CircuitState::Probing { next_probe_at: probe_at, failed_probes }
                if probe_at <= now =>
            {
                let next_probe_at = now + self.open_time(failed_probes);
                circuit.state = CircuitState::Probing { failed_probes, next_probe_at };
                true
            }
            CircuitState::Open { until, .. } => return Err(until - now),
            CircuitState::Probing { .. } => return Err(Duration::ZERO),
        };
        let responses_before = circuit.responses;
        drop(circuit);
        if is_probe && matches!(before, CircuitState::Open { is_half_open: false, .. }) {
            self.log_recovery("half_open", "circuit half-open: one call may probe");
        }
        Ok(Permit { breaker: Arc::clone(self), is_probe, is_settled: false, responses_before })
    }

    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        match self.lock().state {
            CircuitState::Closed { .. } => BreakerState::Closed,
            CircuitState::Open { until, .. } if until > now => BreakerState::Open { retry_in: until - now },
            CircuitState::Open { .. } | CircuitState::Probing { .. } => BreakerState::HalfOpen,
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Circuit> {
        // The state is a plain value that a panic cannot leave half-written.
        self.circuit.lock()
    }

    fn open_time(&self, failed_probes: u32) -> Duration {
        self.settings
            .initial_open_time
            .saturating_mul(1 << failed_probes.min(16))
            .min(self.settings.max_open_time)
            .min(MAX_OPEN_TIME)
    }

    /// The source responded or reported that it is ready: calls pass, and calls that started before do not count against it.
    pub(crate) fn close(&self) {
        let before = {
            let mut circuit = self.lock();
            circuit.responses = circuit.responses.wrapping_add(1);
            circuit.failed_callers = FailedCallers::None;
            std::mem::replace(&mut circuit.state, CircuitState::Closed { failures: 0 })
        };
        if !matches!(before, CircuitState::Closed { .. }) {
            self.log_recovery("closed", "circuit closed: calls pass again");
        }
    }

    fn failed(&self, now: Instant, caller: &str, is_probe: bool, responses_before: u64) {
        let mut circuit = self.lock();
        if circuit.responses != responses_before {
            // The source responded to another call meanwhile, so only this one failed.
            return;
        }
        circuit.failed_callers.add(caller);
        let before = circuit.state;
        let next = match before {
            CircuitState::Closed { failures }
                if failures.saturating_add(1) >= self.settings.failure_threshold =>
            {
                CircuitState::Open { until: now + self.open_time(0), failed_probes: 0, is_half_open: false }
            }
            CircuitState::Closed { failures } => CircuitState::Closed { failures: failures + 1 },
            CircuitState::Probing { failed_probes, .. } if is_probe => CircuitState::Open {
                until: now + self.open_time(failed_probes + 1),
                failed_probes: failed_probes + 1,
                is_half_open: false,
            },
            // A call that started before the circuit opened does not change it.
            unchanged @ (CircuitState::Open { .. } | CircuitState::Probing { .. }) => unchanged,
        };
        circuit.state = next;
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
        self.breaker.close();
    }

    /// The source failed at a call of this caller.
    pub(crate) fn failed(mut self, now: Instant, caller: &str) {
        self.is_settled = true;
        self.breaker.failed(now, caller, self.is_probe, self.responses_before);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.is_probe && !self.is_settled {
            let mut circuit = self.breaker.lock();
            if let CircuitState::Probing { failed_probes, .. } = circuit.state {
                // The probe was cancelled, or it did not reach the source: the next call may probe immediately.
                circuit.state =
                    CircuitState::Open { until: Instant::now(), failed_probes, is_half_open: true };
            }
        }
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
