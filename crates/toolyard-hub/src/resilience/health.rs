//! Health of a source: circuit breaker, concurrency limit and retry budget. It is kept when the source's tools are replaced.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use toolyard_core::SourceId;

use crate::resilience::{
    breaker::{Breaker, BreakerSettings},
    concurrency_limit::ConcurrencyLimit,
    retry::RetryBudget,
};

#[derive(Debug)]
pub(crate) struct SourceState {
    /// Registration order; breaks ties.
    pub(crate) sequence: u64,
    /// The health that all its tools share, except native ones.
    pub(crate) shared: Arc<Health>,
    source: SourceId,
    settings: BreakerSettings,
    /// Native tools are independent of each other: each has its own health.
    by_tool: Mutex<HashMap<Arc<str>, Arc<Health>>>,
}

#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) concurrency_limit: ConcurrencyLimit,
    pub(crate) retry_budget: RetryBudget,
}

impl Health {
    fn new(settings: BreakerSettings, source: &SourceId, tool: Option<&Arc<str>>) -> Arc<Self> {
        Arc::new(Self {
            breaker: Arc::new(Breaker::new(settings, source.clone(), tool.map(Arc::clone))),
            concurrency_limit: ConcurrencyLimit::default(),
            retry_budget: RetryBudget::default(),
        })
    }
}

impl SourceState {
    pub(crate) fn new(sequence: u64, source: &SourceId, settings: BreakerSettings) -> Self {
        Self {
            sequence,
            shared: Health::new(settings, source, None),
            source: source.clone(),
            settings,
            by_tool: Mutex::default(),
        }
    }

    /// The health of one tool; kept as long as the source has a tool of this name.
    pub(crate) fn tool_health(&self, tool: &Arc<str>) -> Arc<Health> {
        let mut by_tool = self.by_tool.lock();
        let known = by_tool.entry(Arc::clone(tool));
        Arc::clone(known.or_insert_with(|| Health::new(self.settings, &self.source, Some(tool))))
    }

    /// Drops the health of tools that the source no longer has.
    pub(crate) fn retain_tools(&self, is_kept: impl Fn(&str) -> bool) {
        let mut by_tool = self.by_tool.lock();
        by_tool.retain(|tool, _| is_kept(tool));
    }
}
