//! [`SourceStatus`]: what the hub reports about a registered source.

use std::sync::Arc;

use tokio::time::Instant;
use toolyard_core::SourceInfo;

use crate::{
    registry::{candidate::ToolCandidate, snapshot::SourceEntry},
    resilience::breaker::BreakerState,
};

/// Status of a registered source.
#[derive(Debug, Clone)]
pub struct SourceStatus {
    /// As given at registration.
    pub info: SourceInfo,
    /// Its tools.
    pub tools: Vec<Arc<ToolCandidate>>,
    /// State of its circuit breaker. Each native tool has its own breaker; the native source reports the worst of them.
    pub breaker: BreakerState,
    /// Native tools whose breaker is not closed.
    pub tripped_tools: Vec<(Arc<str>, BreakerState)>,
    /// Calls that are being executed.
    pub calls_in_flight: usize,
    /// Calls that wait for their turn.
    pub calls_queued: usize,
}

impl SourceStatus {
    pub(crate) fn of(entry: &SourceEntry, now: Instant) -> Self {
        let shared_health = &entry.source.state.shared;
        let tools_with_own_health =
            entry.tools.iter().filter(|tool| !Arc::ptr_eq(&tool.health, shared_health));
        let limits = tools_with_own_health.clone().map(|tool| &tool.health).chain([shared_health]);
        let (calls_in_flight, calls_queued) = limits
            .map(|health| health.concurrency_limit.lengths())
            .fold((0, 0), |sum, lengths| (sum.0 + lengths.0, sum.1 + lengths.1));
        let tripped_tools: Vec<_> = tools_with_own_health
            .map(|tool| (Arc::clone(&tool.name), tool.health.breaker.state(now)))
            .filter(|(_, state)| *state != BreakerState::Closed)
            .collect();
        let breaker = tripped_tools
            .iter()
            .fold(shared_health.breaker.state(now), |worst, (_, state)| worst.worse_of(*state));
        let (info, tools) = (entry.source.info.clone(), entry.tools.to_vec());
        Self { info, tools, breaker, tripped_tools, calls_in_flight, calls_queued }
    }
}
