//! Decides in which order candidates are asked: pinned, then recent success, then priority, then ties.
//!
//! Recent success counts among equals of one name only. Tools that merely share a capability are no equals: between
//! them the operator's pin and the priority decide, and chance shares the work.

use std::{cmp::Reverse, sync::Arc};

use toolyard_core::History;

use crate::candidate::ToolCandidate;

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

    /// The place among equals of one name; ties go to whoever was registered first.
    pub(crate) fn by_name(candidate: &ToolCandidate, history: &dyn History) -> Self {
        let last_success = history.last_success(&candidate.name, candidate.source_id());
        Self::new(candidate.pinned, last_success, candidate.priority, candidate.sequence())
    }

    /// The place among tools of one capability; chance decides ties.
    pub(crate) fn by_capability(candidate: &ToolCandidate) -> Self {
        Self::new(candidate.pinned, None, candidate.priority, fastrand::u64(..))
    }

    fn ties_with(&self, other: &Self) -> bool {
        Self { tie: 0, ..*self } == Self { tie: 0, ..*other }
    }
}

/// Puts equivalents into the order in which they are asked.
pub(crate) fn order(candidates: &mut [Arc<ToolCandidate>], history: &dyn History) {
    if candidates.len() > 1 {
        candidates.sort_by_cached_key(|candidate| Place::by_name(candidate, history));
    }
}

/// Why candidates stand in this order, for whoever wants it explained; by capability there is no history.
pub(crate) fn order_words(candidates: &[Arc<ToolCandidate>], history: Option<&dyn History>) -> String {
    if let [only] = candidates {
        return format!("{only:?}: the only one");
    }
    let place = |candidate: &Arc<ToolCandidate>| match history {
        Some(history) => Place::by_name(candidate, history),
        None => Place::by_capability(candidate),
    };
    let places: Vec<Place> = candidates.iter().map(place).collect();
    let latest = places.iter().map(|place| place.last_success).min();
    let why = |(candidate, place): (&Arc<ToolCandidate>, &Place)| {
        let tied = places.iter().filter(|other| place.ties_with(other)).count() > 1;
        let reason = match (place, history) {
            (Place { not_pinned: false, .. }, _) => "pinned".to_owned(),
            (Place { without_success: false, last_success, .. }, _) if latest == Some(*last_success) => {
                "succeeded last".to_owned()
            }
            (Place { without_success: false, .. }, _) => "succeeded before".to_owned(),
            (Place { priority, .. }, _) if !tied => format!("priority {priority}"),
            (Place { priority, .. }, Some(_)) => format!("priority {priority}, as registered"),
            (Place { priority, .. }, None) => format!("priority {priority}, by chance"),
        };
        format!("{candidate:?}: {reason}")
    };
    candidates.iter().zip(&places).map(why).collect::<Vec<_>>().join("; ")
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
