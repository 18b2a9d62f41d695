//! What the hub remembers of past calls, and the small trait behind which the memory stands.

use std::time::Duration;

use crate::{ErrorKind, SourceId};

/// How one call to one source ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallOutcome<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The source that was called.
    pub source: &'a SourceId,
    /// The class of failure, if it failed.
    pub error: Option<ErrorKind>,
    /// How long it took.
    pub elapsed: Duration,
}

impl<'a> CallOutcome<'a> {
    /// The outcome of one call.
    pub fn new(tool: &'a str, source: &'a SourceId, error: Option<ErrorKind>, elapsed: Duration) -> Self {
        Self { tool, source, error, elapsed }
    }
}

/// Remembers outcomes and says which source of a tool succeeded last.
///
/// Both methods stand in the path of every call: they must not block on IO.
pub trait History: Send + Sync {
    /// Takes note of an outcome.
    fn record(&self, outcome: &CallOutcome<'_>);

    /// A number that is larger the more recently this tool succeeded on this source, if its last call there succeeded.
    fn last_success(&self, tool: &str, source: &SourceId) -> Option<u64>;
}
