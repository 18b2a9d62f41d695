//! Which skills may run programs: the operator's own by nature, all others once they were trusted as they are.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    content::{ContentHash, of_skill},
    durable::write_atomically,
    folder::ResourceError,
    scan::{Skill, SkillScope},
};

const VERSION: u32 = 1;

/// Whether a skill's programs may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// It is the operator's own.
    ByNature,
    /// It was trusted, and is still the same.
    Trusted,
    /// Nobody trusted it.
    Untrusted,
    /// It changed since it was trusted.
    Changed,
}

impl TrustState {
    /// Whether programs may run.
    pub fn allows_programs(self) -> bool {
        matches!(self, Self::ByNature | Self::Trusted)
    }
}

/// Why a decision could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file of decisions could not be read.
    #[error("failed to read the trust file {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file of decisions could not be written.
    #[error("failed to write the trust file {path}: {source}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The skill itself could not be read.
    #[error("failed to read the skill in {path}: {source}")]
    Skill {
        /// Its folder.
        path: PathBuf,
        /// Why.
        source: ResourceError,
    },
    /// Decisions are kept as text.
    #[error("the path {0} is not UTF-8 text")]
    NotText(PathBuf),
}

/// The operator's decisions, in a file of their own.
#[derive(Debug, Clone)]
pub struct TrustFile {
    path: PathBuf,
    /// Canonical folder to the content that was trusted.
    trusted: BTreeMap<String, ContentHash>,
}

/// The form on disk.
#[derive(Serialize, Deserialize)]
struct Form {
    version: u32,
    trusted: BTreeMap<String, ContentHash>,
}

impl TrustFile {
    /// Reads the decisions. A missing file means that none was made; a broken one is an error.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, TrustError> {
        let path = path.into();
        let unreadable = |reason: String| TrustError::Unreadable { path: path.clone(), reason };
        let trusted = match fs::read(&path) {
            Ok(bytes) => {
                let form: Form =
                    serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
                if form.version != VERSION {
                    return Err(unreadable(format!("version {} is not known", form.version)));
                }
                form.trusted
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        Ok(Self { path, trusted })
    }

    /// Writes the decisions, all or nothing, readable by the operator alone.
    pub fn save(&self) -> Result<(), TrustError> {
        let unwritable = |source| TrustError::Unwritable { path: self.path.clone(), source };
        let form = Form { version: VERSION, trusted: self.trusted.clone() };
        let text = serde_json::to_string_pretty(&form).map_err(|error| unwritable(error.into()))?;
        write_atomically(&self.path, text.as_bytes()).map_err(unwritable)
    }

    /// Trusts a skill as it is now. Call [`TrustFile::save`] to keep the decision.
    pub fn trust(&mut self, skill: &Skill) -> Result<(), TrustError> {
        let content = self.content(skill)?;
        self.trusted.insert(key(&skill.path)?, content);
        Ok(())
    }

    /// Takes trust away; says whether there was any.
    pub fn revoke(&mut self, skill: &Skill) -> bool {
        key(&skill.path).is_ok_and(|key| self.trusted.remove(&key).is_some())
    }

    /// Whether a skill's programs may run as they are now.
    pub fn state(&self, skill: &Skill) -> Result<TrustState, TrustError> {
        if skill.scope == SkillScope::Own {
            return Ok(TrustState::ByNature);
        }
        match self.trusted_content(skill) {
            None => Ok(TrustState::Untrusted),
            Some(trusted) if *trusted == self.content(skill)? => Ok(TrustState::Trusted),
            Some(_) => Ok(TrustState::Changed),
        }
    }

    /// The content that was trusted, whether or not it is still the same.
    pub(super) fn trusted_content(&self, skill: &Skill) -> Option<&ContentHash> {
        self.trusted.get(&key(&skill.path).ok()?)
    }

    fn content(&self, skill: &Skill) -> Result<ContentHash, TrustError> {
        of_skill(&skill.path).map_err(|source| TrustError::Skill { path: skill.path.clone(), source })
    }
}

/// The canonical folder: a moved or copied skill is a different one.
fn key(folder: &Path) -> Result<String, TrustError> {
    let canonical = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    canonical.to_str().map(str::to_owned).ok_or(TrustError::NotText(canonical))
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
