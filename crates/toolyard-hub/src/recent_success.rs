//! In-memory [`History`]: which source of a tool succeeded last.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use toolyard_core::{CallOutcome, History, SourceId};

/// Order of successes since the process started.
#[derive(Debug, Default)]
pub struct RecentSuccess {
    clock: AtomicU64,
    sources: RwLock<HashMap<SourceId, Arc<Ticks>>>,
}

/// Per tool name: sequence number of the last success, or 0 if the last call failed.
type Ticks = RwLock<HashMap<String, AtomicU64>>;

impl RecentSuccess {
    fn ticks_of(&self, source: &SourceId) -> Option<Arc<Ticks>> {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).get(source).map(Arc::clone)
    }
}

impl History for RecentSuccess {
    fn record(&self, outcome: &CallOutcome<'_>) {
        let tick = match outcome.error {
            None => self.clock.fetch_add(1, Ordering::Relaxed) + 1,
            Some(_) => 0,
        };
        let ticks = self.ticks_of(outcome.source).unwrap_or_else(|| {
            let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(sources.entry(outcome.source.clone()).or_default())
        });
        if let Some(known) = ticks.read().unwrap_or_else(PoisonError::into_inner).get(outcome.tool) {
            known.store(tick, Ordering::Relaxed);
            return;
        }
        let mut ticks = ticks.write().unwrap_or_else(PoisonError::into_inner);
        ticks.insert(outcome.tool.to_owned(), AtomicU64::new(tick));
    }

    fn last_success(&self, tool: &str, source: &SourceId) -> Option<u64> {
        let ticks = self.ticks_of(source)?;
        let ticks = ticks.read().unwrap_or_else(PoisonError::into_inner);
        Some(ticks.get(tool)?.load(Ordering::Relaxed)).filter(|tick| *tick > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolyard_core::ErrorKind;

    use super::*;

    #[test]
    fn the_latest_success_is_the_largest_and_a_failure_takes_it_away() {
        let history = RecentSuccess::default();
        let (a, b) = (SourceId::from("a"), SourceId::from("b"));
        let note = |source, error| history.record(&CallOutcome::new("t", source, error, Duration::ZERO));
        note(&a, None);
        note(&b, None);
        assert!(history.last_success("t", &a) < history.last_success("t", &b));
        note(&b, Some(ErrorKind::Timeout));
        assert_eq!(history.last_success("t", &b), None);
        assert_eq!(history.last_success("other", &a), None);
    }
}
