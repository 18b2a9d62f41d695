//! All candidates of one name, in order, so that a name which thousands of sources share stays cheap to change.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::{
    candidate::{Standing, ToolCandidate},
    suggest::Shape,
};

/// Equals of the preferred candidate are looked for among so many of the first. Whoever stands behind them is passed
/// over: no call asks that many, and comparing all would make every change of a popular name expensive.
pub(crate) const LOOKED_AT: usize = 64;

/// One name. The first candidates are sorted out when the name changes, so that routing only splits a slice.
#[derive(Debug, Clone)]
pub(crate) struct NameEntry {
    /// Of the first candidates: the preferred one, its equals right behind it, then the others.
    front: Arc<[Arc<ToolCandidate>]>,
    equals: usize,
    /// All that stand behind every one of the front.
    rest: RedBlackTreeMapSync<Standing, Arc<ToolCandidate>>,
    pub(crate) shape: Shape,
}

/// The candidates of one name.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// Whoever is asked first, then its equals; never empty.
    pub used: &'a [Arc<ToolCandidate>],
    /// The next in order that are no equals: not asked unless named.
    pub passed_over: &'a [Arc<ToolCandidate>],
    /// Those too far behind to be compared.
    rest: &'a RedBlackTreeMapSync<Standing, Arc<ToolCandidate>>,
}

impl<'a> Found<'a> {
    /// Every candidate: those that are used, then those that are passed over.
    pub fn all(self) -> impl Iterator<Item = &'a Arc<ToolCandidate>> {
        self.used.iter().chain(self.not_used())
    }

    /// Every candidate that is asked only when it is named.
    pub fn not_used(self) -> impl Iterator<Item = &'a Arc<ToolCandidate>> {
        self.passed_over.iter().chain(self.rest.values())
    }

    /// How many stand so far behind that they are in neither slice.
    pub fn beyond(self) -> usize {
        self.rest.size()
    }

    /// How many candidates there are.
    pub fn count(self) -> usize {
        self.used.len() + self.passed_over.len() + self.rest.size()
    }
}

impl NameEntry {
    /// The entry after one source's candidate was taken out, put in or replaced; nothing when nobody is left.
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
        if front.len() > LOOKED_AT
            && let Some(last) = front.pop()
        {
            rest.insert_mut(last.standing(), last);
        } else if front.len() < LOOKED_AT
            && let Some((standing, next)) = rest.first().map(|(at, next)| (*at, Arc::clone(next)))
        {
            rest.remove_mut(&standing);
            front.push(next);
        }
        let shape = before.map(|entry| entry.shape).or_else(|| new.map(|tool| Shape::of(&tool.name)))?;
        let equals = equals_first(&mut front)?;
        Some(Self { front: front.into(), equals, rest, shape })
    }

    pub(crate) fn preferred(&self) -> Option<&Arc<ToolCandidate>> {
        self.front.first()
    }

    pub(crate) fn found(&self) -> Found<'_> {
        let (used, passed_over) = self.front.split_at_checked(self.equals).unwrap_or((&self.front, &[]));
        Found { used, passed_over, rest: &self.rest }
    }

    /// The candidate of the source with this id; `standing` is where it stands unless it is pinned. One that is pinned
    /// is always in front.
    pub(crate) fn of_source(&self, id: &str, standing: Option<Standing>) -> Option<&Arc<ToolCandidate>> {
        let in_front = self.front.iter().find(|candidate| candidate.source_id().as_str() == id);
        in_front.or_else(|| self.rest.get(&standing?))
    }
}

/// Moves the equals of the first one right behind it, and counts them with it. Between candidates that are not equals,
/// the operator's pin and the priority decide, never past success.
fn equals_first(candidates: &mut [Arc<ToolCandidate>]) -> Option<usize> {
    let preferred = Arc::clone(candidates.first()?);
    let not_equal =
        |other: &Arc<ToolCandidate>| !Arc::ptr_eq(other, &preferred) && !other.equivalent_to(&preferred);
    // The sort is stable: both groups stay in order.
    candidates.sort_by_cached_key(not_equal);
    Some(candidates.partition_point(|candidate| !not_equal(candidate)))
}
