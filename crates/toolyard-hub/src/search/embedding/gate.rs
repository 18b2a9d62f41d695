//! How much meaning may add to the search of words.
//!
//! A request that says a tool's name has found its tool; meaning could only blur that. A request that names nothing is
//! where words fail and meaning helps. So the gate closes as more of the best hit's name stands in the request.

/// How much of that is taken away when the request says the whole name of the best hit.
const CLOSING: f32 = 1.0;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tool_that_was_named_is_left_to_the_words() {
        assert!(Gate::of(2.0, 1.0).most().abs() < f32::EPSILON);
        assert!(Gate::of(2.0, f32::NAN).most().abs() < f32::EPSILON);
    }

    proptest! {
        #[test]
        fn the_more_of_a_name_is_said_the_less_meaning_counts(said in 0.0f32..1.0, more in 0.0f32..1.0) {
            prop_assert!(Gate::of(2.0, said + more).most() <= Gate::of(2.0, said).most());
        }
    }
}
