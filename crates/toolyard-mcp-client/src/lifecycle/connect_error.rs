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
    /// The server did not answer the first request in time; the last lines of its standard error follow.
    ///
    /// Remedy: see its log with `toolyard servers logs NAME`, start its command by hand, or raise `startup_timeout` of
    /// `[servers.NAME]` (a first start may download packages).
    #[error("the server did not respond within {} s{}", .after.as_secs_f64(), last_output(.stderr))]
    TimedOut {
        /// The limit.
        after: Duration,
        /// The end of the server's stderr.
        stderr: String,
    },
    /// The server answered the first request with an error.
    ///
    /// Remedy: see its log with `toolyard servers logs NAME`; check its arguments, variables and credentials.
    #[error("the server responded with an error: {0}")]
    Refused(RpcError),
    /// The server speaks only MCP revisions that Toolyard does not know.
    ///
    /// Remedy: update the server or Toolyard; every revision from 2024-11-05 to 2026-07-28 is supported.
    #[error("unsupported protocol revision {0}")]
    UnsupportedRevision(String),
    /// A response is not what its method promises.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// Any other failure of a request.
    #[error(transparent)]
    Request(RequestError),
    /// The server failed recently, and Toolyard waits before it tries again.
    ///
    /// Remedy: correct the reason in the message; `toolyard servers test NAME` tries at once.
    #[error("{reason}; retry in {} s", .retry_in.as_secs_f64().ceil())]
    TemporarilyUnavailable {
        /// The failure.
        reason: String,
        /// The time until the next retry.
        retry_in: Duration,
    },
    /// The operator disabled the server.
    ///
    /// Remedy: enable it: `toolyard servers enable NAME`.
    #[error("the server is disabled")]
    Disabled,
    /// The caller needs an instance of its own, and there is no room for it.
    #[error("{0}")]
    TooManyInstances(InstanceLimit),
    /// The instance of the caller was stopped to make room for another one, with all that the server remembered for it. This is said
    /// once; the next call starts a new instance.
    ///
    /// Remedy: begin anew: log in, open what was open. As the operator, raise the limit in `[isolation]` that the hint names.
    #[error(
        "the caller's instance of the server was stopped to make room ({0}); its state is lost, and nothing was called"
    )]
    Displaced(InstanceLimit),
    /// The server was stopped while it was starting: by `toolyard servers stop`, a reload or the end of the process.
    ///
    /// Remedy: call the tool again; the next call starts the server.
    #[error("the server was stopped while it was starting")]
    Cancelled,
    /// The server was removed from the settings while it was in use.
    ///
    /// Remedy: add it again if it is needed: `toolyard servers add NAME -- COMMAND`, or `--url URL`.
    #[error("the server is not configured any more")]
    NotConfigured,
    /// No server of the settings has this name.
    ///
    /// Remedy: list the servers with `toolyard servers list`.
    #[error("no server is named `{0}`")]
    UnknownServer(String),
    /// The store with the known tools of servers failed.
    ///
    /// Remedy: check the store with `toolyard store check`.
    #[error("failed to access the cached tools of the server: {0}")]
    Cache(String),
    /// The settings of the server cannot be resolved, for example because a variable is not set; the text says which.
    ///
    /// Remedy: set the variable, store the secret (`toolyard secrets set NAME`) or create the file; `toolyard doctor`
    /// lists what is missing.
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
