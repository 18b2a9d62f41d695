//! How much semantic similarity may add to the lexical score.
//!
//! A request that mentions a tool by its name has usually found it. A request that mentions no name is where lexical search
//! fails and semantic search helps. So the weight falls as the request covers more of the name of the best lexical hit; not
//! to nothing, because everyday words are in names, too ("team" in `create_team`).

/// The part of the weight that is left for a request that mentions the whole name.
const MIN_SHARE: f32 = 0.5;

/// Weight of semantic similarity, relative to the score of the best lexical hit.
///
/// `name_coverage` is the share (0 to 1) of the name of the best lexical hit that the request mentions, by inverse
/// document frequency; 0 without a hit. `max_weight` is the weight at a coverage of 0.
pub(super) fn semantic_weight(max_weight: f32, name_coverage: f32) -> f32 {
    let coverage = if name_coverage.is_finite() { name_coverage.clamp(0.0, 1.0) } else { 1.0 };
    max_weight * (1.0 - (1.0 - MIN_SHARE) * coverage)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_fully_mentioned_name_halves_the_weight() {
        assert!((semantic_weight(2.0, 1.0) - 1.0).abs() < f32::EPSILON);
        assert!((semantic_weight(2.0, f32::NAN) - 1.0).abs() < f32::EPSILON);
    }

    proptest! {
        #[test]
        fn the_weight_falls_with_the_coverage(coverage in 0.0f32..1.0, more in 0.0f32..1.0) {
            prop_assert!(semantic_weight(2.0, coverage + more) <= semantic_weight(2.0, coverage));
        }
    }
}
