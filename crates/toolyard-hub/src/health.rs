//! What is remembered of a source while its tools come and go: breaker, gate and retry budget.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use toolyard_core::SourceId;

use crate::{
    breaker::{Breaker, BreakerSettings},
    gate::Gate,
    retry::RetryBudget,
};

/// What is remembered of a source when its tools change.
#[derive(Debug)]
pub(crate) struct SourceState {
    /// Sources registered earlier go first where nothing else decides.
    pub(crate) sequence: u64,
    /// What all its tools share.
    pub(crate) shared: Arc<Health>,
    source: SourceId,
    settings: BreakerSettings,
    /// Native tools have nothing in common but the process: each has a health of its own.
    by_tool: Mutex<HashMap<Arc<str>, Arc<Health>>>,
}

/// What decides whether and when somebody may be called.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) gate: Gate,
    pub(crate) retries: RetryBudget,
}

impl Health {
    fn new(settings: BreakerSettings, source: &SourceId, tool: Option<&Arc<str>>) -> Arc<Self> {
        Arc::new(Self {
            breaker: Arc::new(Breaker::new(settings, source.clone(), tool.map(Arc::clone))),
            gate: Gate::default(),
            retries: RetryBudget::default(),
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

    /// The health of one tool alone; the same as long as the source has a tool of this name.
    pub(crate) fn of_tool(&self, tool: &Arc<str>) -> Arc<Health> {
        let mut by_tool = self.by_tool.lock().unwrap_or_else(PoisonError::into_inner);
        let known = by_tool.entry(Arc::clone(tool));
        Arc::clone(known.or_insert_with(|| Health::new(self.settings, &self.source, Some(tool))))
    }

    /// Forgets tools that the source no longer has.
    pub(crate) fn keep_only(&self, has: impl Fn(&str) -> bool) {
        let mut by_tool = self.by_tool.lock().unwrap_or_else(PoisonError::into_inner);
        by_tool.retain(|tool, _| has(tool));
    }
}
