//! The candidates of one name, in order of preference; cheap to change even if thousands of sources share the name.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::registry::{
    candidate::{PreferenceKey, ToolCandidate},
    name_suggestions::NameSummary,
};

/// Candidates compared for equivalence with the preferred one. Later ones count as not equivalent: no call uses that many,
/// and comparing all would make every change of a popular name expensive.
pub(crate) const MAX_COMPARED_CANDIDATES: usize = 64;

/// One name. Equivalents are determined when its candidates change, so that routing only splits a slice.
#[derive(Debug, Clone)]
pub(crate) struct NameEntry {
    /// The first [`MAX_COMPARED_CANDIDATES`]: the preferred one, its equivalents, then the others.
    front: Arc<[Arc<ToolCandidate>]>,
    /// How many candidates in `front` are equivalent, the preferred one included.
    equivalent_count: usize,
    is_contested: bool,
    /// The candidates after them.
    uncompared: RedBlackTreeMapSync<PreferenceKey, Arc<ToolCandidate>>,
    pub(crate) summary: NameSummary,
}

/// The candidates of one name.
#[derive(Debug, Clone, Copy)]
pub struct NameMatches<'a> {
    /// The preferred candidate, then its equivalents. Empty if no candidate owns the name: its owner does not offer it now.
    pub equivalents: &'a [Arc<ToolCandidate>],
    /// Compared candidates that are not equivalent: called only if the caller names their source.
    pub others: &'a [Arc<ToolCandidate>],
    /// Whether the bare name is ambiguous, because another candidate has the same right to it as the preferred one.
    pub is_contested: bool,
    /// Candidates that were not compared with the preferred one; they count as not equivalent.
    uncompared: &'a RedBlackTreeMapSync<PreferenceKey, Arc<ToolCandidate>>,
}

impl<'a> NameMatches<'a> {
    /// Every candidate: the equivalents, then all others.
    pub fn all(self) -> impl Iterator<Item = &'a Arc<ToolCandidate>> {
        self.equivalents.iter().chain(self.non_equivalents())
    }

    /// Every candidate that is called only if its source is named.
    pub fn non_equivalents(self) -> impl Iterator<Item = &'a Arc<ToolCandidate>> {
        self.others.iter().chain(self.uncompared.values())
    }

    /// Number of candidates that were not compared with the preferred one.
    pub fn uncompared_count(self) -> usize {
        self.uncompared.size()
    }

    /// Number of candidates.
    pub fn count(self) -> usize {
        self.equivalents.len() + self.others.len() + self.uncompared.size()
    }
}

impl NameEntry {
    /// The entry after one source's candidate was added, replaced or removed; `None` if no candidate is left.
    pub(crate) fn updated(
        before: Option<&Self>,
        old: Option<&ToolCandidate>,
        new: Option<&Arc<ToolCandidate>>,
    ) -> Option<Self> {
        let mut uncompared =
            before.map_or_else(RedBlackTreeMapSync::new_sync, |entry| entry.uncompared.clone());
        let mut front = before.map_or_else(Vec::new, |entry| entry.front.to_vec());
        if let Some(old) = old {
            let preference_key = old.preference_key();
            front.retain(|candidate| candidate.preference_key() != preference_key);
            uncompared.remove_mut(&preference_key);
        }
        if let Some(new) = new.map(Arc::clone) {
            let preference_key = new.preference_key();
            if uncompared.first().is_none_or(|(first_key, _)| preference_key < *first_key) {
                front.push(new);
            } else {
                uncompared.insert_mut(preference_key, new);
            }
        }
        front.sort_by_key(|candidate| candidate.preference_key());
        if front.len() > MAX_COMPARED_CANDIDATES
            && let Some(last) = front.pop()
        {
            uncompared.insert_mut(last.preference_key(), last);
        } else if front.len() < MAX_COMPARED_CANDIDATES
            && let Some((preference_key, next)) =
                uncompared.first().map(|(key, next)| (*key, Arc::clone(next)))
        {
            uncompared.remove_mut(&preference_key);
            front.push(next);
        }
        let summary =
            before.map(|entry| entry.summary).or_else(|| new.map(|tool| NameSummary::of(&tool.name)))?;
        let equivalent_count = sort_equivalents_first(&mut front)?;
        let is_contested = match front.split_first() {
            Some((bare, _)) if bare.owns_name => {
                front.iter().skip(equivalent_count).any(|other| other.contends_with(bare))
            }
            _ => false,
        };
        Some(Self { front: front.into(), equivalent_count, is_contested, uncompared, summary })
    }

    pub(crate) fn matches(&self) -> NameMatches<'_> {
        let (equivalents, others) =
            self.front.split_at_checked(self.equivalent_count).unwrap_or((&self.front, &[]));
        NameMatches { equivalents, others, is_contested: self.is_contested, uncompared: &self.uncompared }
    }

    /// The candidate of a source among the first ones, and whether there are more.
    pub(crate) fn in_source(&self, id: &str) -> (Option<&Arc<ToolCandidate>>, bool) {
        let in_front = self.front.iter().find(|candidate| candidate.source_id().as_str() == id);
        (in_front, !self.uncompared.is_empty())
    }
}

/// Moves the equivalents of the first candidate behind it and returns their number, itself included; 0 if it does not own
/// the name, because then no candidate does. Candidates that are not equivalent are ordered by pin and priority, never by past success.
fn sort_equivalents_first(candidates: &mut [Arc<ToolCandidate>]) -> Option<usize> {
    let preferred = Arc::clone(candidates.first()?);
    if !preferred.owns_name {
        return Some(0);
    }
    // Instances of one program may each be equivalent to the preferred tool, but not to each other.
    let conflicts = |one: &Arc<ToolCandidate>, among: &[Arc<ToolCandidate>]| {
        one.source.info.scope.program.is_some()
            && among.iter().any(|other| other.is_other_instance(one) && other.equivalent_to(&preferred))
    };
    let all = candidates.to_vec();
    let is_other = |other: &Arc<ToolCandidate>| {
        !Arc::ptr_eq(other, &preferred) && (!other.equivalent_to(&preferred) || conflicts(other, &all))
    };
    // A stable sort keeps both groups in order.
    candidates.sort_by_cached_key(is_other);
    Some(candidates.partition_point(|candidate| !is_other(candidate)))
}
