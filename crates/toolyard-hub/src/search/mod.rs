//! Finds the tools that a request is about, in any language, without a model.
//!
//! A catalogue is a [`SearchIndex`]: servers are put in and taken out, each at the cost of its own tools. A request is
//! read into words (`query.rs`); each word may stand in a definition as it is, as another word of its root, as what
//! tools call it (`synonyms.txt`), or as what it means in English (`lexicon/`), and only the best of these counts. What
//! all words say about a tool is added up (`score.rs`), and of the best those are picked that together cover the request
//! (`pick.rs`). What tools were used for before counts apart from that, and only so much
//! (`history.rs`); so does what a local model makes of the request, where there is one (`meaning.rs`, `embedding/`). How
//! well it works is measured: docs/search.md.

mod analysis;
mod document;
#[cfg(feature = "embedding")]
pub mod embedding;
mod field;
mod history;
mod hit;
mod index;
pub mod lexicon;
mod live;
#[cfg(feature = "embedding")]
mod meaning;
mod noise;
mod pick;
mod query;
mod score;
mod stem;
mod synonyms;
mod terms;
#[cfg(test)]
mod testing;
mod values;
mod words;

pub use document::{ParamText, ServerText, ToolText};
pub use field::Field;
pub(crate) use history::MOST_PAST;
pub use hit::{Hit, Matched};
pub use index::SearchIndex;
pub(crate) use live::LiveIndex;
pub use query::Via;
