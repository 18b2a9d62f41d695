//! [`WireError`]: why a message is rejected.

use toolyard_core::sse::SseError;

/// Why a message is rejected. Errors never quote the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A message, list or response of the other side exceeds its limit.
    ///
    /// Remedy: request less data: fewer results, smaller pages; otherwise report it to the author of the server.
    #[error("{what} is longer than {limit} bytes")]
    TooLong {
        /// What, such as `a message`.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// A message is nested deeper than Toolyard reads.
    ///
    /// Remedy: report it to the author of the server or client.
    #[error("a message is nested more than {limit} levels deep")]
    TooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// The other side sent bytes that are not UTF-8.
    ///
    /// Remedy: report it to the author of the server; a stdio server must write only messages to its standard output,
    /// and its log to standard error.
    #[error("a message is not UTF-8")]
    NotUtf8,
    /// The other side sent text that is not JSON.
    ///
    /// Remedy: if it is a stdio server: it must write only messages to its standard output, and its log to standard
    /// error. Start its command by hand to see what it prints.
    #[error("a message is not JSON: {0}")]
    NotJson(String),
    /// The other side sent JSON that is no JSON-RPC message; the text says why.
    ///
    /// Remedy: report it to the author of the server or client.
    #[error("a message is not JSON-RPC 2.0: {0}")]
    NotJsonRpc(&'static str),
    /// The result of the server does not fit the method; the text says why.
    ///
    /// Remedy: update the server, or report it to its author.
    #[error("invalid result of {method}: {problem}")]
    InvalidResult {
        /// The method.
        method: &'static str,
        /// The problem.
        problem: String,
    },
}

impl From<SseError> for WireError {
    fn from(error: SseError) -> Self {
        match error {
            SseError::EventTooLong { limit } => Self::TooLong { what: "an event", limit },
            SseError::LineTooLong { limit } => Self::TooLong { what: "a line of an event stream", limit },
            SseError::NotUtf8 => Self::NotUtf8,
        }
    }
}
