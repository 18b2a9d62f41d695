//! The candidates of one name, in order; cheap to change even if thousands of sources share the name.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::registry::{
    candidate::{PreferenceKey, ToolCandidate},
    name_suggestions::NameSignature,
};

/// Candidates compared for equivalence with the preferred one. Later ones are skipped: no call uses that many, and
/// comparing all would make every change of a popular name expensive.
pub(crate) const MAX_COMPARED_CANDIDATES: usize = 64;

/// One name. Equivalents are determined when the name changes, so that routing only splits a slice.
#[derive(Debug, Clone)]
pub(crate) struct NameEntry {
    /// The first candidates: the preferred one, its equivalents, then the others.
    front: Arc<[Arc<ToolCandidate>]>,
    equals: usize,
    /// All further candidates.
    rest: RedBlackTreeMapSync<PreferenceKey, Arc<ToolCandidate>>,
    pub(crate) shape: NameSignature,
}

/// The candidates of one name.
#[derive(Debug, Clone, Copy)]
pub struct NameMatches<'a> {
    /// The preferred candidate, then its equivalents; never empty.
    pub used: &'a [Arc<ToolCandidate>],
    /// Candidates that are not equivalent: called only if the caller names their source.
    pub skipped: &'a [Arc<ToolCandidate>],
    /// Candidates beyond the comparison limit.
    rest: &'a RedBlackTreeMapSync<PreferenceKey, Arc<ToolCandidate>>,
}

impl<'a> NameMatches<'a> {
    /// Every candidate: used, then skipped.
    pub fn all(self) -> impl Iterator<Item = &'a Arc<ToolCandidate>> {
        self.used.iter().chain(self.not_used())
    }

    /// Every candidate that is called only if its source is named.
    pub fn not_used(self) -> impl Iterator<Item = &'a Arc<ToolCandidate>> {
        self.skipped.iter().chain(self.rest.values())
    }

    /// Number of candidates beyond the comparison limit.
    pub fn beyond(self) -> usize {
        self.rest.size()
    }

    /// Number of candidates.
    pub fn count(self) -> usize {
        self.used.len() + self.skipped.len() + self.rest.size()
    }
}

impl NameEntry {
    /// The entry after one source's candidate was added, replaced or removed; `None` if no candidate is left.
    pub(crate) fn changed(
        before: Option<&Self>,
        old: Option<&ToolCandidate>,
        new: Option<&Arc<ToolCandidate>>,
    ) -> Option<Self> {
        let mut rest = before.map_or_else(RedBlackTreeMapSync::new_sync, |entry| entry.rest.clone());
        let mut front = before.map_or_else(Vec::new, |entry| entry.front.to_vec());
        if let Some(old) = old {
            let standing = old.standing();
            front.retain(|candidate| candidate.standing() != standing);
            rest.remove_mut(&standing);
        }
        if let Some(new) = new.map(Arc::clone) {
            let standing = new.standing();
            if rest.first().is_none_or(|(behind, _)| standing < *behind) {
                front.push(new);
            } else {
                rest.insert_mut(standing, new);
            }
        }
        front.sort_by_key(|candidate| candidate.standing());
        if front.len() > MAX_COMPARED_CANDIDATES
            && let Some(last) = front.pop()
        {
            rest.insert_mut(last.standing(), last);
        } else if front.len() < MAX_COMPARED_CANDIDATES
            && let Some((standing, next)) = rest.first().map(|(at, next)| (*at, Arc::clone(next)))
        {
            rest.remove_mut(&standing);
            front.push(next);
        }
        let shape =
            before.map(|entry| entry.shape).or_else(|| new.map(|tool| NameSignature::of(&tool.name)))?;
        let equals = sort_equivalents_first(&mut front)?;
        Some(Self { front: front.into(), equals, rest, shape })
    }

    pub(crate) fn preferred(&self) -> Option<&Arc<ToolCandidate>> {
        self.front.first()
    }

    pub(crate) fn found(&self) -> NameMatches<'_> {
        let (used, skipped) = self.front.split_at_checked(self.equals).unwrap_or((&self.front, &[]));
        NameMatches { used, skipped, rest: &self.rest }
    }

    /// The candidate of a source; `standing` is its sort key unless it is pinned. A pinned candidate is always in front.
    pub(crate) fn of_source(&self, id: &str, standing: Option<PreferenceKey>) -> Option<&Arc<ToolCandidate>> {
        let in_front = self.front.iter().find(|candidate| candidate.source_id().as_str() == id);
        in_front.or_else(|| self.rest.get(&standing?))
    }
}

/// Moves the equivalents of the first candidate behind it and returns their number, itself included. Candidates that are
/// not equivalent are ordered by pin and priority, never by past success.
fn sort_equivalents_first(candidates: &mut [Arc<ToolCandidate>]) -> Option<usize> {
    let preferred = Arc::clone(candidates.first()?);
    let not_equal =
        |other: &Arc<ToolCandidate>| !Arc::ptr_eq(other, &preferred) && !other.equivalent_to(&preferred);
    // A stable sort keeps both groups in order.
    candidates.sort_by_cached_key(not_equal);
    Some(candidates.partition_point(|candidate| !not_equal(candidate)))
}
