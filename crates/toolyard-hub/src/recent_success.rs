//! In-memory [`History`]: which source of a tool succeeded last.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;
use toolyard_core::{CallRecord, History, SourceId};

/// Numbers the successes since the process started.
#[derive(Debug, Default)]
pub struct RecentSuccess {
    last_number: AtomicU64,
    sources: RwLock<HashMap<SourceId, Arc<LastSuccesses>>>,
}

/// Per tool name: the number of the last success, or 0 if the last call failed.
type LastSuccesses = RwLock<HashMap<String, AtomicU64>>;

impl RecentSuccess {
    fn successes_of(&self, source: &SourceId) -> Option<Arc<LastSuccesses>> {
        self.sources.read().get(source).map(Arc::clone)
    }
}

impl History for RecentSuccess {
    fn record(&self, call: &CallRecord<'_>) {
        let number = match call.error {
            None => self.last_number.fetch_add(1, Ordering::Relaxed) + 1,
            Some(_) => 0,
        };
        let last_successes = self.successes_of(call.source).unwrap_or_else(|| {
            let mut sources = self.sources.write();
            Arc::clone(sources.entry(call.source.clone()).or_default())
        });
        if let Some(known) = last_successes.read().get(call.tool) {
            known.store(number, Ordering::Relaxed);
            return;
        }
        let mut last_successes = last_successes.write();
        last_successes.insert(call.tool.to_owned(), AtomicU64::new(number));
    }

    fn last_success(&self, tool: &str, source: &SourceId) -> Option<u64> {
        let last_successes = self.successes_of(source)?;
        let last_successes = last_successes.read();
        Some(last_successes.get(tool)?.load(Ordering::Relaxed)).filter(|number| *number > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolyard_core::ErrorKind;

    use super::*;

    #[test]
    fn a_later_success_has_a_larger_number_and_a_failure_removes_it() {
        let history = RecentSuccess::default();
        let (a, b) = (SourceId::from("a"), SourceId::from("b"));
        let record = |source, error| history.record(&CallRecord::new("t", source, error, Duration::ZERO));
        record(&a, None);
        record(&b, None);
        assert!(history.last_success("t", &a) < history.last_success("t", &b));
        record(&b, Some(ErrorKind::Timeout));
        assert_eq!(history.last_success("t", &b), None);
        assert_eq!(history.last_success("other", &a), None);
    }
}
