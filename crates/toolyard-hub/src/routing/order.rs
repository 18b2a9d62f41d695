//! Call order of candidates: pin, then recent success, then priority, then ties.
//!
//! Recent success counts among equivalents of one name only. Tools that merely share a capability are ordered by pin and
//! priority; ties are broken at random.

use std::{cmp::Reverse, sync::Arc};

use toolyard_core::History;

use crate::registry::candidate::ToolCandidate;

/// Sort key of a candidate: compared field by field, smaller first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortKey {
    not_pinned: bool,
    without_success: bool,
    last_success: Reverse<u64>,
    priority: u8,
    tie: u64,
}

impl SortKey {
    pub(crate) fn new(pinned: bool, last_success: Option<u64>, priority: u8, tie: u64) -> Self {
        Self {
            not_pinned: !pinned,
            without_success: last_success.is_none(),
            last_success: Reverse(last_success.unwrap_or(0)),
            priority,
            tie,
        }
    }

    /// Key among equivalents of one name; ties go to the source registered first.
    pub(crate) fn by_name(candidate: &ToolCandidate, history: &dyn History) -> Self {
        let last_success = history.last_success(&candidate.name, candidate.source_id());
        Self::new(candidate.pinned, last_success, candidate.priority, candidate.sequence())
    }

    /// Key among tools of one capability; ties are random.
    pub(crate) fn by_capability(candidate: &ToolCandidate) -> Self {
        Self::new(candidate.pinned, None, candidate.priority, fastrand::u64(..))
    }

    fn ties_with(&self, other: &Self) -> bool {
        Self { tie: 0, ..*self } == Self { tie: 0, ..*other }
    }
}

/// Sorts equivalents into call order.
pub(crate) fn order(candidates: &mut [Arc<ToolCandidate>], history: &dyn History) {
    if candidates.len() > 1 {
        candidates.sort_by_cached_key(|candidate| SortKey::by_name(candidate, history));
    }
}

/// Describes the order for `--explain`; by capability there is no history.
pub(crate) fn describe_order(candidates: &[Arc<ToolCandidate>], history: Option<&dyn History>) -> String {
    if let [only] = candidates {
        return format!("{only:?}: the only one");
    }
    let key = |candidate: &Arc<ToolCandidate>| match history {
        Some(history) => SortKey::by_name(candidate, history),
        None => SortKey::by_capability(candidate),
    };
    let keys: Vec<SortKey> = candidates.iter().map(key).collect();
    let latest = keys.iter().map(|key| key.last_success).min();
    let explain = |(candidate, key): (&Arc<ToolCandidate>, &SortKey)| {
        let tied = keys.iter().filter(|other| key.ties_with(other)).count() > 1;
        let reason = match (key, history) {
            (SortKey { not_pinned: false, .. }, _) => "pinned".to_owned(),
            (SortKey { without_success: false, last_success, .. }, _) if latest == Some(*last_success) => {
                "succeeded last".to_owned()
            }
            (SortKey { without_success: false, .. }, _) => "succeeded before".to_owned(),
            (SortKey { priority, .. }, _) if !tied => format!("priority {priority}"),
            (SortKey { priority, .. }, Some(_)) => format!("priority {priority}, as registered"),
            (SortKey { priority, .. }, None) => format!("priority {priority}, by chance"),
        };
        format!("{candidate:?}: {reason}")
    };
    candidates.iter().zip(&keys).map(explain).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_sorted_by_pin_then_recent_success_then_priority() {
        let pinned = SortKey::new(true, None, 2, 9);
        let latest = SortKey::new(false, Some(7), 2, 8);
        let earlier = SortKey::new(false, Some(3), 0, 1);
        let native = SortKey::new(false, None, 0, 5);
        let skill = SortKey::new(false, None, 1, 4);
        let second_skill = SortKey::new(false, None, 1, 6);
        let mut keys = [second_skill, skill, native, earlier, latest, pinned];
        keys.sort();
        assert_eq!(keys, [pinned, latest, earlier, native, skill, second_skill]);
    }
}
