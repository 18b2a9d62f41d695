//! [`PolicyStore`]: policies that are set and removed while gateways run, in a store that they share.

use crate::{BoxFuture, StorageError};

/// A stored policy document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPolicy {
    /// The name.
    pub name: String,
    /// One or more policies in the language Cedar.
    pub text: String,
    /// When it was set, in milliseconds since 1970.
    pub updated_at: i64,
}

/// Stores policies. `by` says who makes a change, for the audit log.
pub trait PolicyStore: Send + Sync {
    /// All policy documents, by name.
    fn stored_policies(&self) -> BoxFuture<'_, Result<Vec<StoredPolicy>, StorageError>>;

    /// Adds a policy document, or replaces the one of this name.
    fn set_policy<'a>(
        &'a self,
        name: &'a str,
        text: &'a str,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Removes a policy document. Returns false if there is none of this name.
    fn remove_policy<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StorageError>>;
}
