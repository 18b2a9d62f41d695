//! The error of ports whose callers cannot act on the cause of a failure.

use std::fmt;

/// A store failed to read or write; the text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StorageError(String);

impl StorageError {
    /// A failure with this cause.
    pub fn new(cause: impl fmt::Display) -> Self {
        Self(cause.to_string())
    }
}
