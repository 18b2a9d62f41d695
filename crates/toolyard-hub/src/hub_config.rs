//! [`HubConfig`]: settings of a hub, and the implementations of its ports. [`HubSettings`] can be replaced while it runs.

use std::sync::Arc;

use toolyard_core::{
    Audit, CallPolicy, CallQuota, CapabilityTable, Embedder, History, PastRequests, Results, Synthesizer,
    telemetry::Telemetry,
};

use crate::{
    output::{budget::OutputLimits, memory_results::MemoryResults},
    recent_success::RecentSuccess,
    resilience::{breaker::BreakerSettings, retry::RetryPolicy},
    routing::rules::RoutingRules,
};

/// Configuration of a hub: settings, and the implementations of its ports.
#[derive(Clone)]
pub struct HubConfig {
    /// Routing rules of the operator.
    pub rules: RoutingRules,
    /// Maps keywords in names and descriptions to capabilities.
    pub capabilities: CapabilityTable,
    /// Output limits by kind of tool (search, calculation, …).
    pub limits: OutputLimits,
    /// Retry policy for calls that are safe to repeat.
    pub retry: RetryPolicy,
    /// Circuit breaker settings.
    pub breaker: BreakerSettings,
    /// Outcomes of past calls; orders equivalent candidates.
    pub history: Arc<dyn History>,
    /// Stores whole results whose output was truncated.
    pub results: Arc<dyn Results>,
    /// The language model that combines several outputs; `None` merges them as text.
    pub synthesizer: Option<Arc<dyn Synthesizer>>,
    /// Audit log; `None` records nothing.
    pub audit: Option<Arc<dyn Audit>>,
    /// Users' past requests and the tools that were called for them; used by search.
    pub past_requests: Option<Arc<dyn PastRequests>>,
    /// Computes embeddings, by which search finds tools besides words; `None` searches by words only.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Receives the calls that have ended.
    pub telemetry: Option<Arc<dyn Telemetry>>,
    /// Decides about calls, besides the `deny` rules; `None` allows them.
    pub policy: Option<Arc<dyn CallPolicy>>,
    /// Limits how much callers and agents may use; `None` limits nothing.
    pub quota: Option<Arc<dyn CallQuota>>,
}

/// The settings of a hub that can be replaced while it runs.
#[derive(Debug, Clone)]
pub struct HubSettings {
    /// Routing rules of the operator.
    pub rules: RoutingRules,
    /// Maps keywords in names and descriptions to capabilities.
    pub capabilities: CapabilityTable,
    /// Output limits by kind of tool.
    pub limits: OutputLimits,
    /// Retry policy for calls that are safe to repeat.
    pub retry: RetryPolicy,
    /// The language model that combines several outputs; `None` merges them as text.
    pub synthesizer: Option<Arc<dyn Synthesizer>>,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            rules: RoutingRules::default(),
            capabilities: CapabilityTable::built_in().clone(),
            limits: OutputLimits::default(),
            retry: RetryPolicy::default(),
            breaker: BreakerSettings::default(),
            history: Arc::new(RecentSuccess::default()),
            results: Arc::new(MemoryResults::default()),
            synthesizer: None,
            audit: None,
            past_requests: None,
            embedder: None,
            telemetry: None,
            policy: None,
            quota: None,
        }
    }
}

impl std::fmt::Debug for HubConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubConfig")
            .field("rules", &self.rules)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
