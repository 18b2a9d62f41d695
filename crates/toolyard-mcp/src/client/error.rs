//! Why a request to a server failed, and what that means for the call it was made for.

use std::time::Duration;

use toolyard_core::{ErrorKind, RawFailure, SourceId, ToolError};

use super::TransportError;
use crate::wire::{RpcError, WireError};

/// Why a request brought no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It did not get through, or its answer did not.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server answered with an error of the protocol.
    #[error("MCP error: {0}")]
    Rpc(#[from] RpcError),
    /// It broke off after the server had begun with it.
    #[error("it broke off after the server had asked back: {0}")]
    InMidCall(TransportError),
    /// The server was silent for too long; progress would have counted as an answer.
    #[error("it was silent for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The server's answer is not one.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// The server asks back again and again.
    #[error("it asked back {0} times without an answer to the call")]
    AsksWithoutEnd(usize),
    /// The call continues an earlier one, and the server cannot do that any more.
    #[error("it asked back in an earlier call, and does not take the answers now")]
    CannotGoOn,
    /// The server needs an answer that nobody here can give.
    #[error("it needs an answer before it goes on, and {0}")]
    NobodyToAsk(String),
}

impl RequestError {
    /// The same failure of a call that the server has begun with: whatever happened to its last request, the first one got
    /// through.
    pub(super) fn in_mid_call(self) -> Self {
        match self {
            Self::Transport(error) => Self::InMidCall(error),
            other => other,
        }
    }

    /// The same failure once a session stands: an error of the protocol that came with an HTTP status is what the server
    /// says to the request, unless it is about who may ask.
    pub(super) fn told(self) -> Self {
        match self {
            Self::Transport(TransportError::Status { status, error: Some(error), .. })
                if !matches!(status, 401 | 403 | 407 | 429 | 500..) =>
            {
                Self::Rpc(error)
            }
            other => other,
        }
    }

    /// Whether it is certain that the call had no effect on the server.
    pub fn had_no_effect(&self) -> bool {
        matches!(self, Self::Transport(error) if error.had_no_effect())
    }

    /// The session this request was made in is gone, and the request was not looked at: it may be made in a new one.
    pub fn session_is_gone(&self) -> bool {
        matches!(self, Self::Transport(TransportError::SessionGone))
    }

    /// The failure of a call to a tool of `server`.
    pub fn into_tool_error(self, server: &SourceId) -> ToolError {
        let logs = format!("logs: toolyard servers logs {server}");
        let error = match &self {
            Self::Transport(TransportError::Status { status: 401 | 403, .. }) => {
                ToolError::new(ErrorKind::Unavailable, self.to_string())
                    .with_hint(format!("log in with `toolyard servers login {server}` or set its headers"))
                    .with_retryable(false)
            }
            Self::Transport(failure) if failure.had_no_effect() => {
                ToolError::new(ErrorKind::Unavailable, self.to_string()).with_hint(logs)
            }
            Self::Transport(TransportError::Ended { last_words, .. }) => {
                let words = if last_words.is_empty() { String::new() } else { format!(": {last_words}") };
                ToolError::new(ErrorKind::Lost, format!("{self} while it was called{words}")).with_hint(logs)
            }
            Self::Transport(_) | Self::InMidCall(_) => {
                ToolError::new(ErrorKind::Lost, self.to_string()).with_hint(logs)
            }
            Self::Silent(_) => ToolError::new(ErrorKind::Timeout, self.to_string()).with_hint(logs),
            Self::Rpc(error) => {
                let failed = ToolError::failed(self.to_string()).with_retryable(false);
                failed.with_raw(RawFailure::Error(error.to_raw()))
            }
            // Something was done; what, nobody can read.
            Self::Malformed(_) => ToolError::new(ErrorKind::Lost, self.to_string()).with_retryable(false),
            Self::CannotGoOn => ToolError::new(ErrorKind::OutcomeUnknown, self.to_string())
                .with_hint("call the tool anew, if nothing was done yet"),
            Self::AsksWithoutEnd(_) | Self::NobodyToAsk(_) => {
                ToolError::failed(self.to_string()).with_retryable(false)
            }
        };
        error.on_source(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_has_begun_with_is_never_taken_for_not_sent() {
        let gone = || TransportError::Unreachable("refused".to_owned());
        let first = RequestError::Transport(gone());
        assert!(first.had_no_effect());
        for failure in [gone(), TransportError::SessionGone] {
            let later = RequestError::Transport(failure).in_mid_call();
            assert!(!later.had_no_effect() && !later.session_is_gone());
            assert_eq!(later.into_tool_error(&"excel".into()).kind(), ErrorKind::Lost);
        }
    }
}
