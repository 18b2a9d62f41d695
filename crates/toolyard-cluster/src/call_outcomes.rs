//! [`CallOutcomes`]: counts calls that other processes execute, by their outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use toolyard_core::{ErrorKind, ToolError, ToolOutput};

const SUCCESS: usize = 0;
const TOOL_ERROR: usize = 1;
const UNAVAILABLE: usize = 2;
const SESSION_LOST: usize = 3;
const RESPONSE_LOST: usize = 4;
const CANCELLED: usize = 5;
const OTHER_ERROR: usize = 6;
const LABELS: [&str; 7] =
    ["success", "tool_error", "unavailable", "session_lost", "response_lost", "cancelled", "error"];

/// Counts calls by their outcome.
#[derive(Debug, Default)]
pub struct CallOutcomes([AtomicU64; LABELS.len()]);

impl CallOutcomes {
    /// The number of calls of each outcome since the start: `success`, `tool_error` (the tool reported a failure), `unavailable`
    /// (nothing was called), `session_lost` (the same), `response_lost` (the outcome is unknown), `cancelled` (by the caller, or by
    /// its deadline) and `error` (any other).
    pub fn counts(&self) -> [(&'static str, u64); LABELS.len()] {
        let mut counts = LABELS.map(|label| (label, 0));
        for ((_, count), counter) in counts.iter_mut().zip(&self.0) {
            *count = counter.load(Ordering::Relaxed);
        }
        counts
    }

    /// Begins a call, which counts as cancelled if the result is dropped.
    pub(crate) fn begin(&self) -> PendingOutcome<'_> {
        PendingOutcome(Some(self))
    }

    fn count(&self, outcome: usize) {
        if let Some(counter) = self.0.get(outcome) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A call whose outcome is not known yet.
#[derive(Debug)]
pub(crate) struct PendingOutcome<'a>(Option<&'a CallOutcomes>);

impl PendingOutcome<'_> {
    pub(crate) fn end(mut self, result: &Result<ToolOutput, ToolError>) {
        let outcome = match result {
            Ok(_) => SUCCESS,
            Err(error) => match error.kind() {
                ErrorKind::Failed => TOOL_ERROR,
                ErrorKind::Unavailable | ErrorKind::CircuitOpen => UNAVAILABLE,
                ErrorKind::SessionLost => SESSION_LOST,
                ErrorKind::ResponseLost | ErrorKind::OutcomeUnknown => RESPONSE_LOST,
                _ => OTHER_ERROR,
            },
        };
        if let Some(outcomes) = self.0.take() {
            outcomes.count(outcome);
        }
    }

    /// No other process executes the call after all.
    pub(crate) fn dismiss(mut self) {
        self.0 = None;
    }
}

impl Drop for PendingOutcome<'_> {
    fn drop(&mut self) {
        if let Some(outcomes) = self.0 {
            outcomes.count(CANCELLED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_counts_once() {
        let outcomes = CallOutcomes::default();
        outcomes.begin().end(&Ok(ToolOutput::text("done")));
        for kind in [ErrorKind::Failed, ErrorKind::ResponseLost, ErrorKind::Timeout, ErrorKind::Unavailable] {
            outcomes.begin().end(&Err(ToolError::new(kind, "failed")));
        }
        drop(outcomes.begin());
        outcomes.begin().dismiss();
        let counted = outcomes.counts().into_iter().filter(|(_, count)| *count > 0);
        let expected = ["success", "tool_error", "unavailable", "response_lost", "cancelled", "error"]
            .map(|label| (label, 1));
        assert_eq!(counted.collect::<Vec<_>>(), expected);
    }
}
