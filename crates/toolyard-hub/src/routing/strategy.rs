//! How several candidates of one call are used.

use toolyard_core::ToolKind;

/// How the candidates of one call are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// A single candidate.
    Direct,
    /// Concurrently; the first success wins and the others are dropped (选最优 in the specification).
    PickBest,
    /// Concurrently; every success becomes part of the output (综合 in the specification).
    Synthesize,
    /// One after another, because at least one of them is not safe to repeat.
    InOrder,
}

/// Candidates called at the same time.
pub const MAX_FIRST_BATCH: usize = 3;

impl Strategy {
    /// The strategy for `count` candidates of this kind. By capability, two or fewer are all called and merged.
    pub fn choose(kind: ToolKind, count: usize, all_repeatable: bool, by_capability: bool) -> Self {
        if count <= 1 {
            Self::Direct
        } else if !all_repeatable {
            Self::InOrder
        } else if (by_capability && count <= 2) || should_synthesize(kind, count) {
            Self::Synthesize
        } else {
            Self::PickBest
        }
    }

    /// Candidates called concurrently before the rest is tried one after another.
    pub fn first_batch(self, count: usize) -> usize {
        match self {
            Self::Direct | Self::InOrder => count.min(1),
            Self::PickBest | Self::Synthesize => count.min(MAX_FIRST_BATCH),
        }
    }

    /// Display name.
    pub fn label(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::PickBest => "pick best",
            Self::Synthesize => "synthesize",
            Self::InOrder => "in order",
        }
    }
}

/// Whether the outputs of several candidates are merged: partial results are, exact ones are not (`_should_synthesize`
/// in the specification).
pub fn should_synthesize(kind: ToolKind, count: usize) -> bool {
    match kind {
        ToolKind::Calculate | ToolKind::Time => false,
        ToolKind::Search | ToolKind::Extract => true,
        ToolKind::History | ToolKind::Other => count == 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_exact_kinds_are_picked_and_of_partial_kinds_merged() {
        assert!(!should_synthesize(ToolKind::Calculate, 2));
        assert!(!should_synthesize(ToolKind::Time, 2));
        assert!(should_synthesize(ToolKind::Search, 5));
        assert!(should_synthesize(ToolKind::Extract, 3));
        assert!(should_synthesize(ToolKind::Other, 2));
        assert!(!should_synthesize(ToolKind::Other, 3));
    }

    #[test]
    fn up_to_two_tools_by_capability_are_merged_whatever_their_kind() {
        assert_eq!(Strategy::choose(ToolKind::Calculate, 2, true, true), Strategy::Synthesize);
        assert_eq!(Strategy::choose(ToolKind::Calculate, 3, true, true), Strategy::PickBest);
    }

    #[test]
    fn a_candidate_that_must_not_be_repeated_forces_sequential_calls() {
        assert_eq!(Strategy::choose(ToolKind::Search, 3, false, true), Strategy::InOrder);
        assert_eq!(Strategy::InOrder.first_batch(7), 1);
    }

    #[test]
    fn the_first_batch_is_at_most_three() {
        assert_eq!([1, 2, 3, 9].map(|count| Strategy::PickBest.first_batch(count)), [1, 2, 3, 3]);
        assert_eq!(Strategy::Synthesize.first_batch(2), 2);
    }
}
