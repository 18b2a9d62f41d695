//! The error of ports whose callers cannot act on the cause of a failure.

use std::fmt;

/// A store failed to read or write; the text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct StorageError {
    cause: String,
    is_outcome_unknown: bool,
}

impl StorageError {
    /// A failure with this cause: nothing was written.
    pub fn new(cause: impl fmt::Display) -> Self {
        Self { cause: cause.to_string(), is_outcome_unknown: false }
    }

    /// A failure after which the change may have been made, such as a connection lost during the commit.
    pub fn with_unknown_outcome(cause: impl fmt::Display) -> Self {
        Self { is_outcome_unknown: true, ..Self::new(cause) }
    }

    /// Whether the change may have been made all the same.
    pub fn is_outcome_unknown(&self) -> bool {
        self.is_outcome_unknown
    }
}
