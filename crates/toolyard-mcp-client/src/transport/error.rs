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
    /// The server could not be started or reached; nothing was sent. The text says why.
    ///
    /// Remedy: for a command: check that it is installed, and start it by hand; for a URL: check the address, the
    /// network and the certificate. `toolyard servers test NAME` tries again.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The process of the server ended; the last lines of its standard error follow.
    ///
    /// Remedy: see its log with `toolyard servers logs NAME`, and start its command by hand with the same arguments and
    /// variables.
    #[error("the server exited ({status}){}", stderr_suffix(.stderr))]
    Exited {
        /// Exit code or signal.
        status: String,
        /// The end of the server's stderr.
        stderr: String,
    },
    /// The connection was lost after something was sent, so the call may have had an effect.
    ///
    /// Remedy: check on the server what happened before you repeat the call; logs: `toolyard servers logs NAME`.
    #[error("the connection was lost: {0}")]
    ConnectionLost(String),
    /// Toolyard closed the connection, because the server was stopped or its settings changed.
    ///
    /// Remedy: call the tool again; the next call connects anew.
    #[error("the connection was closed")]
    Closed,
    /// A message exceeds a limit or is not JSON-RPC.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The server answered with an HTTP error status.
    ///
    /// Remedy: 401 or 403: `toolyard servers login NAME` or check `headers`; 404: check `url`; 429 and 5xx: try again
    /// later. Its log: `toolyard servers logs NAME`.
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
    /// The server answered with a redirect to another site, which would receive credentials.
    ///
    /// Remedy: set `url` of the server to the address that the message names, if you trust it.
    #[error("the server redirects to {0}, which is not followed")]
    Redirect(String),
    /// Something that is not an MCP server answered: a web page, a proxy or a compressed body.
    ///
    /// Remedy: check `url` of the server, including its path (often `/mcp` or `/sse`).
    #[error("the server responded with {0} instead of an MCP message")]
    UnexpectedResponse(String),
    /// The server was restarted or ended the session. The message was not processed.
    ///
    /// Remedy: nothing is needed: Toolyard sends it again in a new session. If it repeats, see the log of the server.
    #[error("the server does not know this session any more")]
    SessionExpired,
    /// A server of the transport HTTP+SSE asks for messages to be posted to another origin.
    ///
    /// Remedy: check `url` of the server; if the other origin is right, use its URL.
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
    /// Too many requests to the server await a response.
    ///
    /// Remedy: wait until some have ended, or limit the callers with `[[quotas]]` and `concurrent_calls`.
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
