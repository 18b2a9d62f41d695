//! Loads the policies of the settings.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toolyard_core::CallPolicy;
use toolyard_policy::{DefaultDecision, PatternRules, Policy, PolicyError, PolicySource};

use crate::{Settings, settings::PolicyDefault};

/// Why the policies of the settings cannot be used. Nothing is called then.
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
    /// Policies have mistakes; each line names file, line and policy. None of them is in effect.
    ///
    /// Remedy: correct them; `toolyard policy check` shows all problems.
    #[error("invalid policies:\n{0}")]
    Invalid(#[from] PolicyError),
}

/// Policies of these files, with the patterns and the default decision of the settings.
pub fn load_policy_files(settings: &Settings, files: &[PathBuf]) -> Result<Policy, PolicyLoadError> {
    let sources = read_files(files)?;
    let approvals = settings.approvals.clone();
    let patterns = PatternRules { allow: approvals.allow, ask: approvals.ask, deny: approvals.deny };
    let default = match settings.policy.default {
        PolicyDefault::Allow => DefaultDecision::Allow,
        PolicyDefault::Deny => DefaultDecision::Deny,
    };
    Ok(Policy::load(&sources, patterns, default)?)
}

fn read_files(files: &[PathBuf]) -> Result<Vec<PolicySource>, PolicyLoadError> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path)
            .map_err(|error| PolicyLoadError::Unreadable { path: path.clone(), error })?;
        Ok(PolicySource { name: path.display().to_string().into(), text })
    };
    files.iter().map(read).collect()
}

/// The policy of a hub; `None` if there are only patterns, which cost a call nothing. Relative paths are relative to `folder`.
pub(crate) fn hub_policy(
    settings: &Settings,
    folder: &Path,
) -> Result<Option<Arc<dyn CallPolicy>>, PolicyLoadError> {
    let files: Vec<PathBuf> = settings.policy.files.iter().map(|file| folder.join(file)).collect();
    let policy = load_policy_files(settings, &files)?;
    for warning in policy.warnings() {
        tracing::warn!(%warning, "suspicious policy");
    }
    Ok(policy.has_more_than_patterns().then(|| Arc::new(policy) as _))
}
