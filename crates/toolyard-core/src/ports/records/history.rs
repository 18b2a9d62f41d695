//! The history of calls, which decides the order of sources, and the users' requests for which tools were called, which
//! improve search.

use std::time::Duration;

use crate::{BoxFuture, DataOwner, ErrorKind, SourceId, redact};

/// Requests are truncated to this size before they are stored.
const MAX_STORED_REQUEST_BYTES: usize = 1_000;
/// A longer request is truncated to this size before secrets are searched in it.
const MAX_READ_REQUEST_BYTES: usize = 16_000;

/// One call to one source, and how it ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallRecord<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The source that was called.
    pub source: &'a SourceId,
    /// The kind of error, if the call failed.
    pub error: Option<ErrorKind>,
    /// How long the call took.
    pub elapsed: Duration,
}

impl<'a> CallRecord<'a> {
    /// The record of a call.
    pub fn new(tool: &'a str, source: &'a SourceId, error: Option<ErrorKind>, elapsed: Duration) -> Self {
        Self { tool, source, error, elapsed }
    }
}

/// How often the calls of a tool of one source succeeded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuccessRate {
    /// Fraction of calls that succeeded, from 0 to 1.
    pub rate: f64,
    /// Number of calls, where older ones may count less.
    pub calls: f64,
}

/// Records calls and tells which source of a tool succeeded last.
///
/// Every call waits for both methods, so they must not block on I/O.
pub trait History: Send + Sync {
    /// Records a call.
    fn record(&self, call: &CallRecord<'_>);

    /// A number that grows with the time of the last success of this tool on this source; none if its last call failed.
    fn last_success(&self, tool: &str, source: &SourceId) -> Option<u64>;

    /// How often this tool succeeded on this source; none if that is not recorded.
    fn success_rate(&self, _tool: &str, _source: &SourceId) -> Option<SuccessRate> {
        None
    }
}

/// A user's request for which a tool was called successfully, with secrets redacted and limited in size.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastRequest {
    /// Whose request it was: it changes the searches of this owner only.
    pub owner: DataOwner,
    /// The tool's name.
    pub tool: String,
    /// The source that was called.
    pub source: SourceId,
    /// The request, redacted and truncated.
    pub request: String,
}

impl PastRequest {
    /// The number of requests to keep per owner and tool, the newest.
    pub const MAX_PER_TOOL: usize = 30;

    /// Redacts and truncates a request. None if nothing is left of it.
    pub fn new(owner: DataOwner, tool: impl Into<String>, source: SourceId, request: &str) -> Option<Self> {
        let request = redact_and_truncate(request);
        (!request.is_empty()).then(|| Self { owner, tool: tool.into(), source, request })
    }

    /// A request from the store, unchanged.
    pub fn from_stored(
        owner: DataOwner,
        tool: impl Into<String>,
        source: SourceId,
        request: impl Into<String>,
    ) -> Self {
        Self { owner, tool: tool.into(), source, request: request.into() }
    }
}

/// Redacts and truncates a request.
fn redact_and_truncate(request: &str) -> String {
    let read = request.get(..request.floor_char_boundary(MAX_READ_REQUEST_BYTES)).unwrap_or_default();
    let read = if read.len() < request.len() {
        // A truncated secret would not be recognized, so the last word is dropped.
        read.rsplit_once(char::is_whitespace).map_or("", |(whole, _)| whole)
    } else {
        read
    };
    let redacted = redact(read.trim());
    let stored =
        redacted.get(..redacted.floor_char_boundary(MAX_STORED_REQUEST_BYTES)).unwrap_or_default().trim();
    // Not every database accepts control characters, and search does not need them.
    stored.replace(char::is_control, " ")
}

/// Records users' requests and the tools called for them, so that search ranks these tools higher for similar requests of the
/// same owner.
///
/// Calls wait for `record`, so it must not block on I/O.
pub trait PastRequests: Send + Sync {
    /// Records a request for which a tool was called successfully.
    fn record(&self, past: PastRequest);

    /// The `limit` newest requests of all owners, oldest first.
    fn recent(&self, limit: usize) -> Vec<PastRequest>;

    /// Waits until stored requests are loaded, for implementations that load them on demand.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored_request(request: &str) -> Option<String> {
        PastRequest::new(DataOwner::Operator, "t", "s".into(), request).map(|past| past.request)
    }

    #[test]
    fn secrets_are_not_stored() {
        let request = stored_request("log in with password=hunter2 and read my mail").unwrap();
        assert!(!request.contains("hunter2") && request.contains("read my mail"), "{request}");
    }

    #[test]
    fn a_truncated_secret_is_not_stored() {
        let key = "AKIAIOSFODNN7EXAMPLE";
        for before in MAX_READ_REQUEST_BYTES - key.len()..=MAX_READ_REQUEST_BYTES {
            // Redaction shrinks the text, so what follows a secret moves within the limit.
            let padding = format!("token={} ", "x".repeat(before.saturating_sub(7)));
            let request = stored_request(&format!("{padding}{key}")).unwrap_or_default();
            assert!(!request.contains("AKIA"), "{request}");
        }
    }

    #[test]
    fn requests_are_truncated_and_empty_ones_dropped() {
        assert_eq!(stored_request("  \n "), None);
        assert_eq!(
            stored_request(&"x".repeat(MAX_READ_REQUEST_BYTES + 1)),
            None,
            "one long word is data, not a request"
        );
        assert_eq!(stored_request("two\nlines\0").as_deref(), Some("two lines "));
        assert!(stored_request(&"天气 ".repeat(5_000)).unwrap().len() <= MAX_STORED_REQUEST_BYTES);
    }
}
