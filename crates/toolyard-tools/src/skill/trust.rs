//! Which skills may run programs: the user's own, and those whose current content the user trusts.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;
use toolyard_core::{ContentHash, TrustDecision};

use super::{
    content_hash::skill_content_hash,
    files::SkillFileError,
    scan::{Skill, SkillScope},
};

/// Whether a skill's programs may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// The skill is the user's own.
    Implicit,
    /// The user trusts the skill, and it has not changed since.
    Trusted,
    /// The user has not trusted the skill.
    Untrusted,
    /// The skill changed since it was trusted.
    Changed,
}

impl TrustState {
    /// Whether programs may run.
    pub fn allows_programs(self) -> bool {
        matches!(self, Self::Implicit | Self::Trusted)
    }
}

/// Why the trust of a skill cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The skill to be trusted cannot be read; the text says why.
    ///
    /// Remedy: check the folder; `toolyard skills list` shows all skills and their problems.
    #[error("failed to read the skill in {path}: {source}")]
    Skill {
        /// Its folder.
        path: PathBuf,
        /// The cause.
        source: SkillFileError,
    },
    /// Decisions of trust store the path as text.
    ///
    /// Remedy: move the skill to a folder with a plain name.
    #[error("the skill in {0} cannot be trusted: its path is not UTF-8 text")]
    PathNotUtf8(PathBuf),
}

/// The user's trust decisions on skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedSkills {
    /// Hash of the trusted content, by canonical folder: a moved or copied skill is a different one.
    content_by_folder: BTreeMap<String, ContentHash>,
}

impl TrustedSkills {
    /// The [`TrustDecision::kind`] for skills.
    pub const KIND: &str = "skill";

    /// Collects the decisions on skills and ignores those of another kind.
    pub fn new(decisions: Vec<TrustDecision>) -> Self {
        let mut trusted = Self::default();
        for decision in decisions {
            trusted.insert(decision);
        }
        trusted
    }

    /// The [`TrustDecision::subject`] for this skill: its folder.
    pub fn subject(skill: &Skill) -> Result<&str, TrustError> {
        skill.path.to_str().ok_or_else(|| TrustError::PathNotUtf8(skill.path.clone()))
    }

    /// The decision to trust the current content of a skill, made at `decided_at` (milliseconds since 1970).
    ///
    /// It takes effect when it is [inserted](Self::insert); the caller stores it. Reads all files of the skill.
    pub fn decision_for(skill: &Skill, decided_at: i64) -> Result<TrustDecision, TrustError> {
        let subject = Self::subject(skill)?.to_owned();
        Ok(TrustDecision { kind: Self::KIND.to_owned(), subject, content: content_hash(skill)?, decided_at })
    }

    /// Adds a decision and replaces an earlier one on the same skill; ignores decisions of another kind.
    pub fn insert(&mut self, decision: TrustDecision) {
        if decision.kind == Self::KIND {
            self.content_by_folder.insert(decision.subject, decision.content);
        }
    }

    /// Revokes trust in a skill; returns whether it was trusted.
    pub fn remove(&mut self, skill: &Skill) -> bool {
        Self::subject(skill).is_ok_and(|subject| self.content_by_folder.remove(subject).is_some())
    }

    /// The trust state of a skill. Reads all files of a skill that was trusted.
    pub fn state(&self, skill: &Skill) -> Result<TrustState, TrustError> {
        if skill.scope == SkillScope::User {
            return Ok(TrustState::Implicit);
        }
        match self.content_by_folder.get(Self::subject(skill)?) {
            None => Ok(TrustState::Untrusted),
            Some(trusted) if *trusted == content_hash(skill)? => Ok(TrustState::Trusted),
            Some(_) => Ok(TrustState::Changed),
        }
    }

    /// The hash of the trusted content of a skill, which may differ from the current one.
    pub(super) fn trusted_content(&self, skill: &Skill) -> Option<ContentHash> {
        self.content_by_folder.get(Self::subject(skill).ok()?).copied()
    }
}

fn content_hash(skill: &Skill) -> Result<ContentHash, TrustError> {
    skill_content_hash(&skill.path).map_err(|source| TrustError::Skill { path: skill.path.clone(), source })
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
