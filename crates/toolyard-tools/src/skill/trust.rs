//! Which skills may run programs: the operator's own by nature, all others once they were trusted as they are.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;
use toolyard_core::{ContentHash, TrustDecision};

use super::{
    content::of_skill,
    folder::ResourceError,
    scan::{Skill, SkillScope},
};

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

/// Why nothing can be said or decided about a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The skill could not be read.
    #[error("failed to read the skill in {path}: {source}")]
    Skill {
        /// Its folder.
        path: PathBuf,
        /// Why.
        source: ResourceError,
    },
    /// Decisions name folders as text.
    #[error("the skill in {0} cannot be trusted: its path is not UTF-8 text")]
    NotText(PathBuf),
}

/// The operator's decisions on skills, as plain data; whoever has a store fills it from there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustBook {
    /// Canonical folder to the content that was trusted: a moved or copied skill is a different one.
    trusted: BTreeMap<String, ContentHash>,
}

impl TrustBook {
    /// The [`TrustDecision::kind`] of decisions on skills.
    pub const KIND: &str = "skill";

    /// The book of these decisions; those of another kind say nothing about skills and are left out.
    pub fn new(decisions: Vec<TrustDecision>) -> Self {
        let mut book = Self::default();
        for decision in decisions {
            book.insert(decision);
        }
        book
    }

    /// The [`TrustDecision::subject`] of decisions on this skill: its folder as text.
    pub fn subject(skill: &Skill) -> Result<&str, TrustError> {
        skill.path.to_str().ok_or_else(|| TrustError::NotText(skill.path.clone()))
    }

    /// The decision to trust a skill as it is now, made at `decided_at` (milliseconds since 1970).
    ///
    /// It changes nothing until it is [inserted](Self::insert) and kept in a store. Reads all files of the skill.
    pub fn decision_for(skill: &Skill, decided_at: i64) -> Result<TrustDecision, TrustError> {
        let subject = Self::subject(skill)?.to_owned();
        Ok(TrustDecision { kind: Self::KIND.to_owned(), subject, content: content(skill)?, decided_at })
    }

    /// Adds a decision, replacing an earlier one on the same skill; one of another kind is left out.
    pub fn insert(&mut self, decision: TrustDecision) {
        if decision.kind == Self::KIND {
            self.trusted.insert(decision.subject, decision.content);
        }
    }

    /// Takes trust away; says whether there was any. It needs nothing of the skill but its path.
    pub fn remove(&mut self, skill: &Skill) -> bool {
        Self::subject(skill).is_ok_and(|subject| self.trusted.remove(subject).is_some())
    }

    /// Whether a skill's programs may run as they are now. Reads all files of a skill that was trusted.
    pub fn state(&self, skill: &Skill) -> Result<TrustState, TrustError> {
        if skill.scope == SkillScope::Own {
            return Ok(TrustState::ByNature);
        }
        match self.trusted.get(Self::subject(skill)?) {
            None => Ok(TrustState::Untrusted),
            Some(trusted) if *trusted == content(skill)? => Ok(TrustState::Trusted),
            Some(_) => Ok(TrustState::Changed),
        }
    }

    /// The content that was trusted, whether or not it is still the same.
    pub(super) fn trusted_content(&self, skill: &Skill) -> Option<ContentHash> {
        self.trusted.get(Self::subject(skill).ok()?).copied()
    }
}

fn content(skill: &Skill) -> Result<ContentHash, TrustError> {
    of_skill(&skill.path).map_err(|source| TrustError::Skill { path: skill.path.clone(), source })
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
