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
}

impl SourceStatus {
    pub(crate) fn of(entry: &SourceEntry, now: Instant) -> Self {
        let shared_health = &entry.source.state.shared;
        let tools_with_own_health =
            entry.tools.iter().filter(|tool| !Arc::ptr_eq(&tool.health, shared_health));
        let tripped_tools: Vec<_> = tools_with_own_health
            .map(|tool| (Arc::clone(&tool.name), tool.health.breaker.state(now)))
            .filter(|(_, state)| *state != BreakerState::Closed)
            .collect();
        let breaker = tripped_tools
            .iter()
            .fold(shared_health.breaker.state(now), |worst, (_, state)| worst.worse_of(*state));
        Self { info: entry.source.info.clone(), tools: entry.tools.to_vec(), breaker, tripped_tools }
    }
}
