//! Decides in which order candidates are asked: pinned, then recent success, then priority, then ties.

use std::{cmp::Reverse, sync::Arc};

use toolyard_core::History;

use crate::candidate::ToolCandidate;

/// What decides between candidates that are alike in everything else.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ties {
    /// Whoever was registered first.
    Sequence,
    /// Chance, so that equals share the work.
    Shuffled,
}

/// A candidate's place: compared field by field, smaller goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    not_pinned: bool,
    without_success: bool,
    last_success: Reverse<u64>,
    priority: u8,
    tie: u64,
}

impl Place {
    pub(crate) fn new(pinned: bool, last_success: Option<u64>, priority: u8, tie: u64) -> Self {
        Self {
            not_pinned: !pinned,
            without_success: last_success.is_none(),
            last_success: Reverse(last_success.unwrap_or(0)),
            priority,
            tie,
        }
    }

    pub(crate) fn of(candidate: &ToolCandidate, history: &dyn History, ties: Ties) -> Self {
        let tie = match ties {
            Ties::Sequence => candidate.sequence(),
            Ties::Shuffled => fastrand::u64(..),
        };
        let last_success = history.last_success(&candidate.name, candidate.source_id());
        Self::new(candidate.pinned, last_success, candidate.priority, tie)
    }
}

/// Puts equivalents into the order in which they are asked.
pub(crate) fn order(candidates: &mut [Arc<ToolCandidate>], history: &dyn History, ties: Ties) {
    if candidates.len() > 1 {
        candidates.sort_by_cached_key(|candidate| Place::of(candidate, history, ties));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_then_recent_success_then_priority() {
        let pinned = Place::new(true, None, 2, 9);
        let latest = Place::new(false, Some(7), 2, 8);
        let earlier = Place::new(false, Some(3), 0, 1);
        let native = Place::new(false, None, 0, 5);
        let skill = Place::new(false, None, 1, 4);
        let second_skill = Place::new(false, None, 1, 6);
        let mut places = [second_skill, skill, native, earlier, latest, pinned];
        places.sort();
        assert_eq!(places, [pinned, latest, earlier, native, skill, second_skill]);
    }
}
