//! Finds the revision family in which a server, or one of its tools, can ask for input.
//!
//! A server may support both families and still send its input requests to the client, as legacy servers do. In a modern
//! session such a request fails inside the server, and with it the call. Nothing announces that beforehand, so the first
//! failure decides: the server is connected again in a legacy session, and remembered as legacy. A tool of an HTTP server that can
//! ask only in the modern family fails once in the legacy session. From then on it is called in a further, modern session, until the
//! gateway restarts.

use std::sync::Arc;

use toolyard_core::{ErrorKind, RevisionFamily, SourceId, ToolError};
use toolyard_mcp::CallResult;

use crate::{
    config::{HttpKind, TransportConfig},
    lifecycle::server::ManagedServer,
    session::{error::RequestError, handle::Session},
};

/// How much of a failed result is searched.
const MAX_SEARCHED_CHARS: usize = 4_096;
/// What the official SDKs call the requests that a session cannot carry, …
const SERVER_REQUESTS: [&str; 2] = ["server-initiated request", "server-to-client request"];
/// … and how they say so.
const REFUSALS: [&str; 5] =
    ["no back-channel", "not available", "unavailable", "not allowed", "not supported"];

/// What FastMCP 4 says of a tool whose result asks for input, in a legacy session. The protocol has no code for it.
const MODERN_ONLY_ERROR: &str = "only exists at mcp 2026-07-28";

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

/// Whether a call failed because the result of the tool exists only in the modern family.
pub(super) fn call_needs_modern_session(outcome: &Result<CallResult, RequestError>) -> bool {
    matches!(outcome, Err(RequestError::Rpc(error)) if lowercase_start(&error.message).contains(MODERN_ONLY_ERROR))
}

fn lowercase_start(text: &str) -> String {
    text.chars().take(MAX_SEARCHED_CHARS).collect::<String>().to_ascii_lowercase()
}

fn reports_missing_back_channel(text: &str) -> bool {
    let text = lowercase_start(text);
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

/// The error of a call that would have worked in the session which the tool gets from now on.
pub(super) fn modern_tool_error(server: &SourceId) -> ToolError {
    let message = "the tool asked for input in a way that only MCP 2026-07-28 has; \
        it is called in that revision from now on";
    let hint = "call the tool again, and its input requests will arrive; \
        the call was not repeated automatically, because it may have had an effect before it asked";
    ToolError::failed(message).with_hint(hint).with_retryable(true).on_source(server)
}

impl ManagedServer {
    /// Handles the failure of a tool in `session` that can ask only in a modern session. Returns whether it gets one from now on.
    pub(super) fn note_modern_tool(&self, tool: &str, session: &Session) -> bool {
        // Elsewhere a further session has a process of its own, without what the calls of other tools left in this one.
        let has_same_state =
            matches!(self.config.transport, TransportConfig::Http { kind, .. } if kind != HttpKind::Sse);
        let has_choice = self.config.revision_family.is_none()
            && has_same_state
            && !self.config.exclusive
            && !self.is_private();
        let gets_one = has_choice && session.revision_family() == RevisionFamily::Legacy;
        if gets_one {
            self.state.lock().modern_tools.insert(tool.to_owned());
        }
        gets_one
    }

    /// Fails if the tool can ask only in a modern session and this is none.
    pub(super) fn check_family(&self, tool: &str, session: &Session) -> Result<(), ToolError> {
        let is_wrong = session.revision_family() != RevisionFamily::Modern
            && self.state.lock().modern_tools.contains(tool);
        if !is_wrong {
            return Ok(());
        }
        let message = "the tool asks for input in a way that only MCP 2026-07-28 has, and no session of that revision could be opened; \
            nothing was called";
        let hint = "call the tool again later; the reason is in the log of the gateway";
        Err(ToolError::new(ErrorKind::Unavailable, message).with_hint(hint).on_source(&self.config.id))
    }

    /// Handles the failure of an input request in `session` that needed a back-channel. Returns whether the server has a
    /// session with one now.
    pub(super) async fn gain_back_channel(self: &Arc<Self>, session: &Arc<Session>) -> bool {
        let family = session.revision_family();
        let back_channel = {
            let mut state = self.state.lock();
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
                self.state.lock().back_channel = BackChannel::Missing;
                false
            }
            // The server is down, which is what the next call reports.
            Err(_) => false,
        }
    }

    /// Replaces a session at the next call, and closes it when its requests in flight are complete.
    fn drain_session(self: &Arc<Self>, session: &Arc<Session>) {
        {
            let mut state = self.state.lock();
            if !state.lifecycle.expire(session) {
                return;
            }
            if session.in_flight_requests() == 0 {
                return state.close_session(Arc::clone(session));
            }
            state.draining.push(Arc::clone(session));
        }
        self.close_when_drained(session);
    }
}

#[cfg(test)]
mod tests {
    use toolyard_mcp::RpcError;

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
    fn a_tool_that_needs_a_modern_session_is_recognized() {
        let fastmcp = "Tool 'book' returned an InputRequiredResult to request client input, but the multi-round-trip result type \
            (SEP-2322) only exists at MCP 2026-07-28; this connection negotiated '2025-11-25'.";
        for (message, needs_modern) in [(fastmcp, true), ("the file only exists on Mondays", false)] {
            let error = RpcError { code: -32602, message: message.to_owned(), data: None };
            assert_eq!(call_needs_modern_session(&Err(RequestError::Rpc(error))), needs_modern, "{message}");
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
