//! Why a server could not be connected.

use std::time::Duration;

use toolyard_mcp::{RpcError, WireError};

use crate::{
    lifecycle::isolation::pool::InstanceLimit,
    session::error::RequestError,
    transport::{error::TransportError, stderr_summary::stderr_suffix},
};

/// Why a server could not be connected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server could not be reached, or the connection failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server did not respond in time.
    #[error("the server did not respond within {} s{}", .after.as_secs_f64(), last_output(.stderr))]
    TimedOut {
        /// The limit.
        after: Duration,
        /// The end of the server's stderr.
        stderr: String,
    },
    /// The server responded with an error.
    #[error("the server responded with an error: {0}")]
    Refused(RpcError),
    /// The server speaks only revisions that we do not.
    #[error("unsupported protocol revision {0}")]
    UnsupportedRevision(String),
    /// A response is not what its method promises.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// Any other failure of a request.
    #[error(transparent)]
    Request(RequestError),
    /// The server failed recently, and Toolyard waits before it retries.
    #[error("{reason}; retry in {} s", .retry_in.as_secs_f64().ceil())]
    TemporarilyUnavailable {
        /// The failure.
        reason: String,
        /// The time until the next retry.
        retry_in: Duration,
    },
    /// The operator disabled the server.
    #[error("the server is disabled")]
    Disabled,
    /// The caller needs an instance of its own, and there is no room for it.
    #[error("{0}")]
    TooManyInstances(InstanceLimit),
    /// The server was stopped while it was starting.
    #[error("the server was stopped while it was starting")]
    Cancelled,
    /// The server was removed from the configuration.
    #[error("the server is not configured any more")]
    NotConfigured,
    /// No server has this name.
    #[error("no server is named `{0}`")]
    UnknownServer(String),
    /// The cache of tools failed.
    #[error("failed to access the cached tools of the server: {0}")]
    Cache(String),
    /// The configuration cannot be resolved, for example because a variable is not set.
    #[error("{0}")]
    Configuration(String),
}

impl ConnectError {
    /// Whether a server that had a session may still have it: the connection failed, or a proxy before the server answered.
    pub(crate) fn may_have_kept_session(&self) -> bool {
        use TransportError as T;
        matches!(
            self,
            Self::Transport(T::Unreachable(_) | T::ConnectionLost(_) | T::Status { status: 502..=504, .. })
        )
    }

    /// Whether the server has no tokens of the caller that it accepts.
    pub(crate) fn is_sign_in_required(&self) -> bool {
        matches!(self, Self::Transport(TransportError::SignInRequired { .. }))
    }
}

/// What a server wrote that did not respond, which is not necessarily why.
fn last_output(stderr: &str) -> String {
    let line = stderr_suffix(stderr);
    if line.is_empty() { line } else { format!("; stderr{line}") }
}

impl From<RequestError> for ConnectError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Transport(error) => Self::Transport(error),
            RequestError::Rpc(error) => Self::Refused(error),
            RequestError::Malformed(error) => Self::Malformed(error),
            RequestError::IdleTimeout(after) => Self::TimedOut { after, stderr: String::new() },
            other => Self::Request(other),
        }
    }
}
