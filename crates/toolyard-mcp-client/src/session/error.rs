//! Why a request failed, and what that means for the tool call it belongs to.

use std::time::Duration;

use toolyard_core::{ErrorKind, RawToolError, SourceId, SourceSignal, ToolError};
use toolyard_mcp::{RpcError, WireError};

use crate::config::{CallerHeaderError, McpServerConfig};
use crate::transport::{error::TransportError, stderr_summary::stderr_suffix};

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request or its response was not delivered.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server answered the call with a protocol error; code and text are its own.
    ///
    /// Remedy: read the text; see the log of the server with `toolyard servers logs NAME`.
    #[error("MCP error: {0}")]
    Rpc(#[from] RpcError),
    /// The connection failed after the server had started to process the call, so it may have had an effect.
    ///
    /// Remedy: check on the server what happened before you repeat the call; logs: `toolyard servers logs NAME`.
    #[error("the call was interrupted after the server had asked for input: {0}")]
    Interrupted(TransportError),
    /// The server sent neither a response nor progress in time.
    ///
    /// Remedy: raise `--timeout`, `[call] timeout` or `call_timeout` of the server; see its log with `toolyard servers
    /// logs NAME`.
    #[error("no response or progress from the server for {} s", .0.as_secs_f64())]
    IdleTimeout(Duration),
    /// The response is not what the method promises.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// The server asked for input again and again.
    ///
    /// Remedy: call the tool with complete arguments; otherwise report it to the author of the server.
    #[error("the server asked for input {0} times without completing the call")]
    TooManyInputRounds(usize),
    /// The call continues an earlier one, and the server has lost it or was restarted.
    ///
    /// Remedy: call the tool again from the beginning, if the earlier call had no effect.
    #[error("the server asked for input in an earlier call and cannot take the answers now")]
    CannotResume,
    /// The server needs input that nobody can give; the text says why.
    ///
    /// Remedy: call the tool with a client that supports elicitation, or pass the values as arguments.
    #[error("the server needs input, but {0}")]
    InputUnavailable(String),
}

/// How the operator lets Toolyard in to a server that refuses its credentials.
pub(crate) fn login_hint(server: &SourceId) -> String {
    format!(
        "sign in: toolyard servers login {server} (for missing scopes with --scope SCOPES), or set its headers"
    )
}

/// The error of a call whose caller lacks what a header of the server needs.
pub(crate) fn caller_header_error(error: &CallerHeaderError) -> ToolError {
    ToolError::new(ErrorKind::Refused, error.to_string())
        .with_operator_hint(
            "give the reference in `headers` a default (`:-`), or let the issuer add the claim",
        )
        .with_caller_hint("only the operator can change what the server needs to know of you")
}

/// The error of a call for which the server has no tokens of the caller.
pub(crate) fn sign_in_error(reason: &str) -> ToolError {
    ToolError::new(ErrorKind::SignInRequired, reason)
        .with_operator_hint(
            "the caller gets a link to sign in from `toolyard serve` on HTTP: see docs/guide/callers.md",
        )
        .with_caller_hint("only the operator can offer a page to sign in")
}

/// The same for a client, which cannot do it.
pub(crate) const LOGIN_CALLER_HINT: &str = "the operator must give Toolyard access to the server";

impl RequestError {
    /// Marks the failure of a call that the server has started to process: even if the last request was not sent, the
    /// first one was.
    pub(crate) fn into_interrupted(self) -> Self {
        match self {
            Self::Transport(error) => Self::Interrupted(error),
            other => other,
        }
    }

    /// In an established session, a JSON-RPC error with an HTTP status is the server's response, unless the status is
    /// about authorization, rate limits or a failure of the server.
    pub(crate) fn into_session_error(self) -> Self {
        match self {
            Self::Transport(TransportError::Status { status, error: Some(error), .. })
                if !matches!(status, 401 | 403 | 407 | 429 | 500..) =>
            {
                Self::Rpc(error)
            }
            other => other,
        }
    }

    /// Whether the server certainly did not process the request.
    pub fn had_no_effect(&self) -> bool {
        matches!(self, Self::Transport(error) if error.had_no_effect())
    }

    /// Whether nothing of the request left this process.
    pub(crate) fn was_never_sent(&self) -> bool {
        matches!(self, Self::Transport(TransportError::Unreachable(_)))
    }

    /// Whether the session expired before the request was processed; it may be sent again in a new one.
    pub fn is_session_expired(&self) -> bool {
        matches!(self, Self::Transport(TransportError::SessionExpired))
    }

    /// How long the server asks to wait before another request.
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Transport(error) | Self::Interrupted(error) => error.retry_after(),
            _ => None,
        }
    }

    /// What the failure says about the server as a whole.
    fn source_signal(&self) -> SourceSignal {
        match self {
            Self::Transport(error) | Self::Interrupted(error) => error.source_signal(),
            Self::IdleTimeout(_) => SourceSignal::Faulty,
            Self::Rpc(_)
            | Self::Malformed(_)
            | Self::TooManyInputRounds(_)
            | Self::CannotResume
            | Self::InputUnavailable(_) => SourceSignal::Healthy,
        }
    }

    /// The error of a tool call to `server`.
    pub fn into_tool_error(self, config: &McpServerConfig) -> ToolError {
        let server = &config.id;
        let check = match config.has_log() {
            true => format!("logs: toolyard servers logs {server}"),
            false => format!("test it: toolyard servers test {server}"),
        };
        let error = match &self {
            Self::Transport(TransportError::CallerHeader(error)) => caller_header_error(error),
            Self::Transport(TransportError::SignInRequired { reason, .. }) => sign_in_error(reason),
            Self::Transport(TransportError::Status { status: 401 | 403, .. }) => {
                ToolError::new(ErrorKind::Unavailable, self.to_string())
                    .with_operator_hint(login_hint(server))
                    .with_caller_hint(LOGIN_CALLER_HINT)
                    .with_retryable(false)
            }
            Self::Transport(failure) if failure.had_no_effect() => {
                ToolError::new(ErrorKind::Unavailable, self.to_string()).with_operator_hint(check)
            }
            Self::Transport(TransportError::Exited { status, stderr }) => {
                let reason = stderr_suffix(stderr);
                let message = format!("the server exited ({status}) during the call{reason}");
                ToolError::new(ErrorKind::ResponseLost, message).with_operator_hint(check)
            }
            Self::Transport(_) | Self::Interrupted(_) => {
                ToolError::new(ErrorKind::ResponseLost, self.to_string()).with_operator_hint(check)
            }
            Self::IdleTimeout(_) => {
                ToolError::new(ErrorKind::Timeout, self.to_string()).with_operator_hint(check)
            }
            Self::Rpc(error) => {
                let failed = ToolError::failed(self.to_string()).with_retryable(false);
                failed.with_raw(RawToolError::Protocol(error.to_raw()))
            }
            // The call was executed, but its result cannot be read.
            Self::Malformed(_) => {
                ToolError::new(ErrorKind::ResponseLost, self.to_string()).with_retryable(false)
            }
            Self::CannotResume => ToolError::new(ErrorKind::OutcomeUnknown, self.to_string())
                .with_hint("call the tool again if it had no effect yet"),
            Self::TooManyInputRounds(_) | Self::InputUnavailable(_) => {
                ToolError::failed(self.to_string()).with_retryable(false)
            }
        };
        let error = match self.retry_after() {
            Some(delay) => error
                .with_hint(format!("the server asks to retry in {} s", delay.as_secs()))
                .with_retry_after(delay),
            None => error,
        };
        error.with_source_signal(self.source_signal()).on_source(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excel() -> McpServerConfig {
        McpServerConfig::stdio("excel", "excel-server", [""; 0])
    }

    fn status(status: u16, retry_after_seconds: Option<u32>) -> RequestError {
        let (error, excerpt, challenge) = (None, None, None);
        RequestError::Transport(TransportError::Status {
            status,
            error,
            excerpt,
            challenge,
            retry_after_seconds,
        })
    }

    #[test]
    fn a_response_to_one_request_does_not_count_against_the_server() {
        let too_long = || WireError::TooLong { what: "a response", limit: 1 };
        let one_request = [
            RequestError::Transport(TransportError::Wire(too_long())),
            RequestError::Transport(TransportError::TooManyRequests(1_024)),
            RequestError::Transport(TransportError::Closed),
            RequestError::Transport(TransportError::UnexpectedResponse("text/html".to_owned())),
            RequestError::Malformed(too_long()),
            RequestError::TooManyInputRounds(9),
            RequestError::InputUnavailable("nobody is there".to_owned()),
        ];
        let statuses = (400..=501).map(|code| status(code, None));
        for error in one_request.into_iter().chain(statuses) {
            let text = error.to_string();
            assert!(!error.into_tool_error(&excel()).is_source_fault(), "{text}");
        }
        let whole_server = [
            RequestError::Transport(TransportError::Unreachable("refused".to_owned())),
            RequestError::Transport(TransportError::ConnectionLost("reset".to_owned())),
            RequestError::Interrupted(TransportError::ConnectionLost("reset".to_owned())),
            RequestError::IdleTimeout(Duration::from_secs(1)),
            status(502, None),
            status(503, None),
            status(504, None),
        ];
        for error in whole_server {
            let text = error.to_string();
            assert!(error.into_tool_error(&excel()).is_source_fault(), "{text}");
        }
    }

    #[test]
    fn clients_get_no_commands() {
        let errors = [
            status(401, None),
            status(403, None),
            status(503, Some(7)),
            RequestError::Transport(TransportError::Unreachable("refused".to_owned())),
            RequestError::Transport(TransportError::Closed),
            RequestError::Interrupted(TransportError::Closed),
            RequestError::IdleTimeout(Duration::from_secs(1)),
        ];
        for error in errors {
            let error = error.into_tool_error(&excel());
            assert!(error.hint().unwrap().contains("toolyard "), "the operator gets them: {error:?}");
            assert!(!error.caller_hint().unwrap_or_default().contains("toolyard "), "{error:?}");
        }
    }

    #[test]
    fn only_the_log_of_a_server_that_is_started_here_is_recommended() {
        let hint = |config: &McpServerConfig| {
            let lost = RequestError::Transport(TransportError::ConnectionLost("reset".to_owned()));
            lost.into_tool_error(config).hint().unwrap().to_owned()
        };
        assert_eq!(hint(&excel()), "logs: toolyard servers logs excel");
        let remote = McpServerConfig::http("excel", "https://example.com/mcp");
        assert_eq!(hint(&remote), "test it: toolyard servers test excel");
    }

    #[test]
    fn a_rate_limit_keeps_the_delay_that_the_server_asks_for() {
        let error = status(429, Some(7)).into_tool_error(&excel());
        assert!(error.hint().unwrap().ends_with("the server asks to retry in 7 s"), "{:?}", error.hint());
        assert_eq!(
            (error.kind(), error.retry_after()),
            (ErrorKind::Unavailable, Some(Duration::from_secs(7)))
        );
        assert!(error.retryable() && !error.is_source_fault());
        assert_eq!(status(429, None).into_tool_error(&excel()).retry_after(), None);
        let overloaded = status(503, Some(2)).into_tool_error(&excel());
        assert!(overloaded.hint().unwrap().ends_with("the server asks to retry in 2 s"));
        assert!(overloaded.kind() == ErrorKind::ResponseLost && overloaded.is_source_fault());
    }

    #[test]
    fn an_interrupted_call_is_never_taken_for_not_sent() {
        let unreachable = || TransportError::Unreachable("refused".to_owned());
        assert!(RequestError::Transport(unreachable()).had_no_effect());
        for failure in [unreachable(), TransportError::SessionExpired] {
            let later = RequestError::Transport(failure).into_interrupted();
            assert!(!later.had_no_effect() && !later.was_never_sent() && !later.is_session_expired());
            assert_eq!(later.into_tool_error(&excel()).kind(), ErrorKind::ResponseLost);
        }
    }
}
