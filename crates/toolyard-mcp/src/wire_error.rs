//! [`WireError`]: why a message is rejected.

use toolyard_core::sse::SseError;

/// Why a message is rejected. Errors never quote the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Something exceeds its limit.
    #[error("{what} is longer than {limit} bytes")]
    TooLong {
        /// What, such as `a message`.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// JSON is nested too deeply.
    #[error("a message is nested more than {limit} levels deep")]
    TooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("a message is not UTF-8")]
    NotUtf8,
    /// The text is not JSON.
    #[error("a message is not JSON: {0}")]
    NotJson(String),
    /// The JSON is not JSON-RPC 2.0.
    #[error("a message is not JSON-RPC 2.0: {0}")]
    NotJsonRpc(&'static str),
    /// A result does not fit its method.
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
