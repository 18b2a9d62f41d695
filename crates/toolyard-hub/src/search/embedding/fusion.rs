//! How meaning is added to the search of words: a bonus behind a gate.
//!
//! A request that says a tool's name has found its tool; meaning could only blur that. A request that names nothing is
//! where words fail and meaning helps. So the gate closes as more of the best hit's name stands in the request.

/// How much of that is taken away when the request says the whole name of the best hit.
const CLOSING: f32 = 0.9;

/// How much meaning may add for one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate(f32);

impl Gate {
    /// The gate for a request that says this share (0 to 1) of the name of the best hit of words: the rarities (inverse
    /// document frequencies) of the name's words that stand in the request, by those of all its words. 0 without a hit.
    /// `most` is what meaning adds at most, measured in the score of the best hit of words.
    pub fn of(most: f32, name_said: f32) -> Self {
        let said = if name_said.is_finite() { name_said.clamp(0.0, 1.0) } else { 1.0 };
        Self(most * (1.0 - CLOSING * said))
    }

    /// What meaning adds at most, measured in the score of the best hit of words.
    pub fn most(self) -> f32 {
        self.0
    }
}

/// Puts both scores of a tool together, for one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    gate: Gate,
    best_text: f32,
    best_similarity: f32,
}

impl Fusion {
    /// For a request whose best hit of words scored `best_text` and whose most alike tool is `best_similarity` alike.
    pub fn new(gate: Gate, best_text: f32, best_similarity: f32) -> Self {
        Self { gate, best_text, best_similarity }
    }

    /// The score of one tool: 0 to 1 for its words, and what the gate lets through for its meaning.
    pub fn score(&self, text: f32, similarity: f32) -> f32 {
        share(text, self.best_text) + self.gate.0 * share(similarity, self.best_similarity)
    }
}

fn share(part: f32, whole: f32) -> f32 {
    let share = part / whole;
    if share.is_finite() && whole > 0.0 { share.clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tool_that_was_named_stays_before_one_that_is_only_alike() {
        let fusion = Fusion::new(Gate::of(2.0, 1.0), 12.0, 0.7);
        assert!(fusion.score(12.0, 0.1) > fusion.score(0.0, 0.7));
    }

    #[test]
    fn a_request_without_words_of_any_tool_goes_by_meaning() {
        let fusion = Fusion::new(Gate::of(2.0, 0.0), 0.0, 0.7);
        assert!(fusion.score(0.0, 0.7) > fusion.score(0.0, 0.2));
        assert_eq!(fusion.score(0.0, -0.3), 0.0);
    }

    proptest! {
        #[test]
        fn more_of_either_never_lowers_a_score(
            said in -0.5f32..1.5, best in 0.0f32..50.0, alike in -0.2f32..1.0,
            text in 0.0f32..50.0, similarity in -1.0f32..1.0, more in 0.0f32..1.0,
        ) {
            let fusion = Fusion::new(Gate::of(2.0, said), best, alike);
            let score = fusion.score(text, similarity);
            prop_assert!(score.is_finite() && score >= 0.0);
            prop_assert!(fusion.score(text + more, similarity) >= score);
            prop_assert!(fusion.score(text, similarity + more) >= score);
        }

        #[test]
        fn the_more_of_a_name_is_said_the_less_meaning_counts(said in 0.0f32..1.0, more in 0.0f32..1.0) {
            prop_assert!(Gate::of(2.0, said + more).most() <= Gate::of(2.0, said).most());
        }
    }
}
