//! [`PartialDecisionCache`]: what policies say about a caller and a tool, computed once.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState},
    sync::Arc,
};

use parking_lot::RwLock;
use toolyard_core::{CallerIdentity, PolicySubject, PolicyTool};

use crate::policy::PartialDecision;

/// Pairs of callers and tools that are remembered.
const MAX_PARTIAL_DECISIONS: usize = 32_768;

/// Remembers partial decisions by caller, tool, agent and profile.
#[derive(Default)]
pub(crate) struct PartialDecisionCache {
    entries: RwLock<HashMap<u64, Entry>>,
    hasher: RandomState,
}

struct Entry {
    identity: Option<Arc<CallerIdentity>>,
    agent: Option<Box<str>>,
    profile: Box<str>,
    tool: u64,
    partial: Arc<PartialDecision>,
}

impl PartialDecisionCache {
    pub(crate) fn get_or_insert(
        &self,
        subject: &PolicySubject<'_>,
        tool: &PolicyTool,
        compute: impl FnOnce() -> PartialDecision,
    ) -> Arc<PartialDecision> {
        let key = self.key(subject, tool);
        if let Some(entry) = self.entries.read().get(&key)
            && entry.is_for(subject, tool)
        {
            return Arc::clone(&entry.partial);
        }
        let partial = Arc::new(compute());
        let entry = Entry {
            identity: subject.identity.cloned(),
            agent: subject.agent.map(Into::into),
            profile: subject.profile.into(),
            tool: tool.id(),
            partial: Arc::clone(&partial),
        };
        let mut entries = self.entries.write();
        if entries.len() >= MAX_PARTIAL_DECISIONS {
            entries.clear();
        }
        entries.insert(key, entry);
        partial
    }

    fn key(&self, subject: &PolicySubject<'_>, tool: &PolicyTool) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        subject.identity.map(|identity| identity.owner_hash_ref()).hash(&mut hasher);
        (subject.agent, subject.profile, tool.id()).hash(&mut hasher);
        hasher.finish()
    }
}

impl Entry {
    /// Compares everything that a decision depends on: two callers may have the same key, and one caller may have other
    /// claims in its next token.
    fn is_for(&self, subject: &PolicySubject<'_>, tool: &PolicyTool) -> bool {
        let same_identity = match (&self.identity, subject.identity) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
            _ => false,
        };
        same_identity
            && self.tool == tool.id()
            && self.agent.as_deref() == subject.agent
            && *self.profile == *subject.profile
    }
}
