//! Connects a server in the legacy revision family if its input requests need a back-channel, which the modern family lacks.
//!
//! A server may support both families and still send its input requests to the client, as legacy servers do. In a modern
//! session such a request fails inside the server, and with it the call. Nothing announces that beforehand, so the first
//! failure decides: the server is connected again in a legacy session, and remembered as legacy.

use std::{sync::Arc, time::Duration};

use toolyard_core::{RevisionFamily, SourceId, ToolError};
use toolyard_mcp::CallResult;

use crate::{
    config::TransportConfig,
    lifecycle::server::ManagedServer,
    session::{error::RequestError, handle::Session},
    sync::lock,
};

/// How much of a failed result is searched.
const MAX_SEARCHED_CHARS: usize = 4_096;
/// What the official SDKs call the requests that a session cannot carry, …
const SERVER_REQUESTS: [&str; 2] = ["server-initiated request", "server-to-client request"];
/// … and how they say so.
const REFUSALS: [&str; 5] =
    ["no back-channel", "not available", "unavailable", "not allowed", "not supported"];

/// In which revision family the input requests of a server work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BackChannel {
    /// None failed so far.
    #[default]
    Untested,
    /// Not in the modern one.
    Legacy,
    /// In neither.
    Missing,
}

/// Whether a request failed because its session cannot carry an input request of the server.
pub(super) fn lacks_back_channel(error: &RequestError) -> bool {
    matches!(error, RequestError::Rpc(error) if reports_missing_back_channel(&error.message))
}

/// The same for the call of a tool, whose failure may also be a result.
pub(super) fn call_lacks_back_channel(outcome: &Result<CallResult, RequestError>) -> bool {
    match outcome {
        Ok(result) => result.is_error && reports_missing_back_channel(result.raw.get()),
        Err(error) => lacks_back_channel(error),
    }
}

fn reports_missing_back_channel(text: &str) -> bool {
    let text: String = text.chars().take(MAX_SEARCHED_CHARS).collect();
    let text = text.to_ascii_lowercase();
    let contains_any = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    contains_any(&SERVER_REQUESTS) && contains_any(&REFUSALS)
}

/// The error of a call that would have worked in the session which the server has now. Whether it is safe to repeat is for
/// the hub to decide.
pub(super) fn revision_changed_error(server: &SourceId) -> ToolError {
    let message = "the server asked for input in a way that only earlier MCP revisions have; \
        the server is connected in such a revision from now on";
    let hint = "call the tool again, and its input requests will arrive; \
        the call was not repeated automatically, because it may have had an effect before it asked";
    ToolError::failed(message).with_hint(hint).with_retryable(true).on_source(server)
}

impl ManagedServer {
    /// Handles the failure of an input request in `session` that needed a back-channel. Returns whether the server has a
    /// session with one now.
    pub(super) async fn gain_back_channel(self: &Arc<Self>, session: &Arc<Session>) -> bool {
        let family = session.revision_family();
        let back_channel = {
            let mut state = lock(&self.state);
            let (is_configured, is_http) = (
                self.config.revision_family.is_some(),
                matches!(self.config.transport, TransportConfig::Http { .. }),
            );
            state.back_channel = match (family, state.back_channel) {
                _ if is_configured => return false,
                (_, BackChannel::Missing) => return false,
                (RevisionFamily::Modern, BackChannel::Untested | BackChannel::Legacy) => BackChannel::Legacy,
                (RevisionFamily::Legacy, BackChannel::Legacy) => BackChannel::Missing,
                // An earlier process may have changed the family in vain. A legacy session over HTTP without a back-channel
                // has no state that could be lost.
                (RevisionFamily::Legacy, BackChannel::Untested) if is_http => BackChannel::Missing,
                (RevisionFamily::Legacy, BackChannel::Untested) => return false,
            };
            if state.back_channel == BackChannel::Missing {
                state.revision_family = Some(RevisionFamily::Modern);
            }
            state.back_channel
        };
        tracing::info!(server = %self.config.id, ?family, ?back_channel, "input request failed without a back-channel");
        self.drain_session(session);
        // Waits for the new session, so that its family is known and cached.
        match self.connect().await {
            Ok(session) if session.revision_family() == RevisionFamily::Legacy => {
                back_channel == BackChannel::Legacy
            }
            Ok(_modern) => {
                lock(&self.state).back_channel = BackChannel::Missing;
                false
            }
            // The server is down, which is what the next call reports.
            Err(_) => false,
        }
    }

    /// Replaces a session at the next call, and closes it when its requests in flight are complete.
    fn drain_session(self: &Arc<Self>, session: &Arc<Session>) {
        {
            let mut state = lock(&self.state);
            if !state.lifecycle.expire(session) {
                return;
            }
            if session.in_flight_requests() == 0 {
                return state.close_session(Arc::clone(session));
            }
            state.draining.push(Arc::clone(session));
        }
        self.close_when_drained(session, Duration::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_the_official_sdks_are_recognized() {
        let messages = [
            // Python
            "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests.",
            // FastMCP 4
            "elicitation via server-initiated requests is unavailable on 2026-07-28 connections",
            // TypeScript, in a result
            r#"{"content":[{"type":"text","text":"Server-to-client requests are not available on protocol revision 2026-07-28: 'elicitation/create' cannot be sent"}],"isError":true}"#,
            // Rust
            "server-to-client requests are not allowed on protocol 2026-07-28 or later; return InputRequiredResult instead",
            // Ruby
            "Server-initiated requests are not available in the modern lifecycle (SEP-2575).",
        ];
        for message in messages {
            assert!(reports_missing_back_channel(message), "{message}");
        }
    }

    #[test]
    fn other_errors_are_not() {
        let far = format!("{}no back-channel for server-initiated requests", "x".repeat(MAX_SEARCHED_CHARS));
        for message in
            ["the file is not available", "no back-channel", "42 server-initiated requests", "", far.as_str()]
        {
            assert!(!reports_missing_back_channel(message), "{message}");
        }
    }
}
