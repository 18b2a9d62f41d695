//! [`StoredSettings`]: settings in a store, which all gateways of the store share. Every change is a new version.

use crate::{BoxFuture, StorageError};

/// A version of the settings in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsVersion {
    /// Versions are numbered from 1 without gaps.
    pub number: i64,
    /// The whole settings, in the format of `toolyard.toml`.
    pub text: String,
    /// What changed, such as `server time added`.
    pub change: String,
    /// Who changed it.
    pub changed_by: String,
    /// When it was changed, in milliseconds since 1970.
    pub changed_at: i64,
}

/// Stores versions of settings. The version with the highest number is in effect.
pub trait StoredSettings: Send + Sync {
    /// The version in effect; none if nothing was ever stored.
    fn latest_settings(&self) -> BoxFuture<'_, Result<Option<SettingsVersion>, StorageError>>;

    /// The number of the version in effect; 0 if nothing was ever stored.
    fn latest_settings_number(&self) -> BoxFuture<'_, Result<i64, StorageError>>;

    /// The latest versions, newest first.
    fn settings_versions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SettingsVersion>, StorageError>>;

    /// One version.
    fn settings_version(&self, number: i64) -> BoxFuture<'_, Result<Option<SettingsVersion>, StorageError>>;

    /// Adds a version that changes the version `after`, and records in the audit log that `by` made the change. Returns its number, or
    /// `None` if `after` is not in effect any more: somebody else was faster.
    fn add_settings_version<'a>(
        &'a self,
        after: i64,
        text: &'a str,
        change: &'a str,
        by: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, StorageError>>;
}
