//! What words of one language mean in another: data that can be added, never code.

use std::ops::Range;

/// A word of a text and what it may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// Where the word stands in the text, in bytes.
    pub word: Range<usize>,
    /// What it may mean, the likeliest first; each is one or more lowercase words. Only the best of them counts.
    pub glosses: Vec<Vec<String>>,
}

/// Translates the words of a text.
pub trait Lexicon: Send + Sync {
    /// The words of a text that are known, in order, without overlaps.
    fn meanings(&self, text: &str) -> Vec<Meaning>;
}
