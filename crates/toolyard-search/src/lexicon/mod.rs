//! Lexicons translate the words of requests and descriptions: data that can be added without code.
//!
//! A Chinese request finds English tools because the [`Lexicon`] translates its words. A Chinese description is found by
//! English requests because its translation is indexed with it.
//!
//! [`BuiltInLexicon`] is a table inside the program. [`StoredLexicon`] is a file that [`build_lexicon`] makes from a
//! CC-CEDICT dictionary. [`Lexicons`] combines both and is what a search uses.

mod builder;
mod built_in;
mod byte_reader;
mod cedict;
mod error;
mod format;
mod gloss;
mod lexicons;
mod origin;
mod script;
mod segmenter;
mod stored_lexicon;
mod translation;
mod writer;

pub use builder::{LexiconBuild, build_lexicon};
pub use built_in::BuiltInLexicon;
pub use cedict::{DictionaryEntry, parse_cedict};
pub use error::LexiconError;
pub use lexicons::Lexicons;
pub use origin::Origin;
pub use stored_lexicon::StoredLexicon;
pub use translation::{Lexicon, WordTranslation};
