//! The trait of lexicons.

use std::ops::Range;

/// A word of a text and its translations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordTranslation {
    /// Byte range of the word in the text.
    pub range: Range<usize>,
    /// Glosses (short translations), the likeliest first; each is one or more lowercase words.
    pub glosses: Vec<Vec<String>>,
}

/// Translates the words of a text.
pub trait Lexicon: Send + Sync {
    /// The known words of a text, in order and without overlaps.
    fn translate(&self, text: &str) -> Vec<WordTranslation>;
}
