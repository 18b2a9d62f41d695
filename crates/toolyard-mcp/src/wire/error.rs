//! Why bytes from the other side are not taken.

/// A message that is not taken. What was wrong is said without repeating the message itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Something is larger than the limit for it.
    #[error("{what} is longer than {limit} bytes")]
    TooLong {
        /// `a message`, `an event`, `an answer`.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// JSON nested more deeply than the limit.
    #[error("a message is nested more than {limit} levels deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("a message is not UTF-8")]
    NotText,
    /// The text is not JSON.
    #[error("a message is not JSON: {0}")]
    NotJson(String),
    /// The JSON is not JSON-RPC 2.0.
    #[error("a message is not JSON-RPC 2.0: {0}")]
    NotJsonRpc(&'static str),
    /// A payload is not what its method promises.
    #[error("{method} was answered with something else: {problem}")]
    NotAnAnswer {
        /// The method that was asked.
        method: &'static str,
        /// What does not fit.
        problem: String,
    },
}
