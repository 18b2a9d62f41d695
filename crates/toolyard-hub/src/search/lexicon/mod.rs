//! What words of one language mean in another: data that can be added, never code.
//!
//! A Chinese request finds English tools because its words are looked up here and their glosses are searched as well. The
//! reverse needs nothing else: [`Lexicon::meanings`] of a Chinese description, asked when the tool is indexed, gives the
//! English words by which it can be found.
//!
//! [`BuiltInLexicon`] is a table of our own inside the program. [`StoredLexicon`] is a file that was built by [`build`]
//! from a dictionary. [`Lexicons`] puts both together; it is what a search asks.

mod build;
mod built_in;
mod entry;
mod error;
mod form;
mod gloss;
mod index;
mod lexicons;
mod reader;
mod segment;
mod write;

use std::ops::Range;

pub use build::{Built, Origin, build};
pub use built_in::BuiltInLexicon;
pub use entry::{Entry, entries};
pub use error::LexiconError;
pub use index::StoredLexicon;
pub use lexicons::Lexicons;

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
