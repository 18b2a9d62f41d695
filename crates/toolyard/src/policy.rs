//! Loads the policies of the settings.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toolyard_core::{CallPolicy, StorageError, StoredPolicy};
use toolyard_policy::{DefaultDecision, PatternRules, Policy, PolicyError, PolicySource};

use crate::{Settings, settings::PolicyDefault};

/// Precedes the name of a stored policy document where a file would be named.
const STORE_PREFIX: &str = "store:";

/// Why the policies of the settings and of the store cannot be used. Nothing is called then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyLoadError {
    /// A file of `[policy] files` does not exist or cannot be read.
    ///
    /// Remedy: correct the path, which is relative to the settings file, and let this user read the file.
    #[error("failed to read the policies in {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The policies of the store could not be read, so no tool may be called.
    ///
    /// Remedy: check the store with `toolyard store check`.
    #[error("failed to read the policies of the store: {0}")]
    Store(#[from] StorageError),
    /// Policies have mistakes; each line names file, line and policy. None of them is in effect.
    ///
    /// Remedy: correct them; `toolyard policy check` shows all problems.
    #[error("invalid policies:\n{0}")]
    Invalid(#[from] PolicyError),
}

/// The policies of a hub, as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PolicyDocuments {
    /// The files of the settings.
    pub(crate) files: Vec<PolicySource>,
    /// The documents of the store.
    pub(crate) stored: Vec<StoredPolicy>,
}

/// The policies and patterns of the settings, and those of the store; relative paths are relative to `folder`.
pub fn load_policy(
    settings: &Settings,
    folder: &Path,
    stored: &[StoredPolicy],
) -> Result<Policy, PolicyLoadError> {
    combine(settings, read_files(&settings_files(settings, folder))?, stored)
}

/// Policies of these files and documents, with the patterns and the default decision of the settings.
pub fn load_policy_files(
    settings: &Settings,
    files: &[PathBuf],
    stored: &[StoredPolicy],
) -> Result<Policy, PolicyLoadError> {
    combine(settings, read_files(files)?, stored)
}

fn settings_files(settings: &Settings, folder: &Path) -> Vec<PathBuf> {
    settings.policy.files.iter().map(|file| folder.join(file)).collect()
}

fn read_files(files: &[PathBuf]) -> Result<Vec<PolicySource>, PolicyLoadError> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path)
            .map_err(|error| PolicyLoadError::Unreadable { path: path.clone(), error })?;
        Ok(PolicySource { name: path.display().to_string().into(), text })
    };
    files.iter().map(read).collect()
}

fn combine(
    settings: &Settings,
    mut sources: Vec<PolicySource>,
    stored: &[StoredPolicy],
) -> Result<Policy, PolicyLoadError> {
    sources.extend(stored.iter().map(|policy| PolicySource {
        name: format!("{STORE_PREFIX}{}", policy.name).into(),
        text: policy.text.clone(),
    }));
    let approvals = settings.approvals.clone();
    let patterns = PatternRules { allow: approvals.allow, ask: approvals.ask, deny: approvals.deny };
    let default = match settings.policy.default {
        PolicyDefault::Allow => DefaultDecision::Allow,
        PolicyDefault::Deny => DefaultDecision::Deny,
    };
    Ok(Policy::load(&sources, patterns, default)?)
}

impl PolicyDocuments {
    /// Reads the files of the settings; relative paths are relative to `folder`.
    pub(crate) fn read(
        settings: &Settings,
        folder: &Path,
        stored: Vec<StoredPolicy>,
    ) -> Result<Self, PolicyLoadError> {
        Ok(Self { files: read_files(&settings_files(settings, folder))?, stored })
    }
}

/// The policy of a hub; `None` if there are only patterns, which cost a call nothing.
pub(crate) fn hub_policy(
    settings: &Settings,
    documents: &PolicyDocuments,
) -> Result<Option<Arc<dyn CallPolicy>>, PolicyLoadError> {
    let policy = combine(settings, documents.files.clone(), &documents.stored)?;
    for warning in policy.warnings() {
        tracing::warn!(%warning, "suspicious policy");
    }
    Ok(policy.has_more_than_patterns().then(|| Arc::new(policy) as _))
}

/// The policies of the store; none without a store.
#[cfg(feature = "store")]
pub(crate) async fn stored_policies(
    store: Option<&toolyard_store::Store>,
) -> Result<Vec<StoredPolicy>, PolicyLoadError> {
    use toolyard_core::PolicyStore as _;

    match store {
        Some(store) => Ok(store.stored_policies().await?),
        None => Ok(Vec::new()),
    }
}
