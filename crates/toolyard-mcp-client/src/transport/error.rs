//! Why a message was not delivered, or its response did not arrive.

use std::time::Duration;

use toolyard_core::SourceSignal;
use toolyard_mcp::{RpcError, WireError};

use super::stderr_summary::stderr_suffix;
use crate::config::CallerHeaderError;

/// Why a message was not delivered, or its response did not arrive.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The server could not be started or reached; nothing was sent.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The server process exited.
    #[error("the server exited ({status}){}", stderr_suffix(.stderr))]
    Exited {
        /// Exit code or signal.
        status: String,
        /// The end of the server's stderr.
        stderr: String,
    },
    /// The connection was lost after something was sent.
    #[error("the connection was lost: {0}")]
    ConnectionLost(String),
    /// We closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// A message exceeds a limit or is not JSON-RPC.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// An HTTP error status.
    #[error("the server responded with HTTP status {status}{}", .excerpt.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// Such as 404.
        status: u16,
        /// The JSON-RPC error in the body, if there is one.
        error: Option<RpcError>,
        /// The beginning of the body, sanitized.
        excerpt: Option<Box<str>>,
        /// The header `WWW-Authenticate`.
        challenge: Option<String>,
        /// How long the header `Retry-After` asks to wait.
        retry_after_seconds: Option<u32>,
    },
    /// A redirect that is not followed.
    #[error("the server redirects to {0}, which is not followed")]
    Redirect(String),
    /// An HTTP response that is neither JSON nor an event stream, or is compressed.
    #[error("the server responded with {0} instead of an MCP message")]
    UnexpectedResponse(String),
    /// The server does not know the session any more. The message was not processed; it may be sent again in a new
    /// session.
    #[error("the server does not know this session any more")]
    SessionExpired,
    /// The server asks for messages to be posted to another origin.
    #[error("the server names an endpoint at another origin, which is refused: {0}")]
    CrossOriginEndpoint(String),
    /// A header has no value for the caller; nothing was sent.
    #[error(transparent)]
    CallerHeader(#[from] CallerHeaderError),
    /// The server has no tokens of the caller that it accepts; nothing was processed.
    #[error("{reason}")]
    SignInRequired {
        /// Such as that there are no tokens.
        reason: String,
        /// The header `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The limit of requests that await a response is reached.
    #[error("{0} requests to the server are in flight already")]
    TooManyRequests(usize),
}

impl TransportError {
    /// Whether the server refuses the credentials, or that there are none.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Status { status: 401 | 403, .. })
    }

    /// Whether the server certainly did not process the request.
    pub fn had_no_effect(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::TooManyRequests(_)
            | Self::CallerHeader(_)
            | Self::SignInRequired { .. }
            | Self::SessionExpired
            | Self::CrossOriginEndpoint(_) => true,
            Self::Status { status, .. } => matches!(status, 401 | 403 | 404 | 405 | 406 | 415 | 429),
            _ => false,
        }
    }

    /// How long the server asks to wait before another request.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { status: 429 | 503, retry_after_seconds, .. } => {
                retry_after_seconds.map(|seconds| Duration::from_secs(seconds.into()))
            }
            _ => None,
        }
    }

    /// What the failure says about the server as a whole. A response to one request, even an HTTP error, an oversized or an
    /// invalid one, shows that the server responds; only the statuses of gateways say that it does not.
    pub fn source_signal(&self) -> SourceSignal {
        match self {
            Self::Unreachable(_)
            | Self::Exited { .. }
            | Self::ConnectionLost(_)
            | Self::Status { status: 502..=504, .. } => SourceSignal::Faulty,
            Self::Status { .. }
            | Self::Wire(_)
            | Self::Redirect(_)
            | Self::UnexpectedResponse(_)
            | Self::SignInRequired { .. }
            | Self::SessionExpired
            | Self::CrossOriginEndpoint(_) => SourceSignal::Healthy,
            Self::Closed | Self::TooManyRequests(_) | Self::CallerHeader(_) => SourceSignal::Unknown,
        }
    }
}
