//! What the hub remembers of past calls and of the requests behind them, and the small traits behind which the memory
//! stands.

use std::time::Duration;

use crate::{BoxFuture, ErrorKind, SourceId, redact};

/// More of a request is not kept, in bytes.
const MOST_BYTES: usize = 1_000;
/// More of a request is not looked at, in bytes.
const MOST_READ: usize = 16_000;

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

/// What a tool was used for: a request that it answered. It holds no secrets that can be told by their looks, and is
/// never long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastRequest {
    /// The tool's name.
    pub tool: String,
    /// The source that answered.
    pub source: SourceId,
    /// What was asked for, as it may be kept.
    pub request: String,
}

impl PastRequest {
    /// How many requests of one tool are worth keeping, the newest.
    pub const OF_ONE_TOOL: usize = 30;

    /// A request as it may be kept: without secrets, and cut. None if nothing is left of it.
    pub fn new(tool: impl Into<String>, source: SourceId, request: &str) -> Option<Self> {
        let request = kept(request);
        (!request.is_empty()).then(|| Self { tool: tool.into(), source, request })
    }

    /// A request that was kept before, as it was kept.
    pub fn from_kept(tool: impl Into<String>, source: SourceId, request: impl Into<String>) -> Self {
        Self { tool: tool.into(), source, request: request.into() }
    }
}

/// The form of a request that may be kept.
fn kept(request: &str) -> String {
    let read = request.get(..request.floor_char_boundary(MOST_READ)).unwrap_or_default();
    let read = if read.len() < request.len() {
        // Half a secret is not told as one: the word that was cut goes too.
        read.rsplit_once(char::is_whitespace).map_or("", |(whole, _)| whole)
    } else {
        read
    };
    let redacted = redact(read.trim());
    let cut = redacted.get(..redacted.floor_char_boundary(MOST_BYTES)).unwrap_or_default().trim();
    // No word has these in it, and not every database takes them.
    cut.replace(char::is_control, " ")
}

/// Remembers what tools were used for, so that they are found sooner for something similar.
///
/// Recording stands in the path of calls: it must not block on IO.
pub trait PastRequests: Send + Sync {
    /// Takes note of a request that was answered.
    fn record(&self, past: PastRequest);

    /// All that is known, the oldest first, at most the `limit` newest.
    fn recent(&self, limit: usize) -> Vec<PastRequest>;

    /// Ends once everything that was kept is known, for those who read it only when somebody needs it.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_of(request: &str) -> Option<String> {
        PastRequest::new("t", "s".into(), request).map(|past| past.request)
    }

    #[test]
    fn secrets_are_not_kept() {
        let kept = kept_of("log in with password=hunter2 and read my mail").unwrap();
        assert!(!kept.contains("hunter2") && kept.contains("read my mail"), "{kept}");
    }

    #[test]
    fn a_secret_that_is_cut_in_two_is_not_kept() {
        let key = "AKIAIOSFODNN7EXAMPLE";
        for before in MOST_READ - key.len()..=MOST_READ {
            // Secrets shrink to a marker, so what stands far behind them would otherwise come forward.
            let filling = format!("token={} ", "x".repeat(before.saturating_sub(7)));
            let kept = kept_of(&format!("{filling}{key}")).unwrap_or_default();
            assert!(!kept.contains("AKIA"), "{kept}");
        }
    }

    #[test]
    fn requests_are_cut_and_nothing_is_not_kept() {
        assert_eq!(kept_of("  \n "), None);
        assert_eq!(kept_of(&"x".repeat(MOST_READ + 1)), None, "this is data and no request");
        assert_eq!(kept_of("two\nlines\0").as_deref(), Some("two lines "));
        assert!(kept_of(&"天气 ".repeat(5_000)).unwrap().len() <= MOST_BYTES);
    }
}
