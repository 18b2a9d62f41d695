//! Finds the tools that a request needs, among thousands and in any language, without a language model.
//!
//! A [`SearchIndex`] is an in-memory catalogue. Adding a source takes time in proportion to its own tools; removing one
//! also moves what later tools with the same terms have in the index. A search takes the text of a request and returns [`Hit`]s, each with the words that matched and why.
//!
//! ```
//! use toolyard_search::{MatchKind, SearchIndex, SourceText, ToolText};
//!
//! let tool = |name: &str, description: &str| ToolText {
//!     key: name.into(),
//!     name: name.to_owned(),
//!     description: description.to_owned(),
//!     ..ToolText::default()
//! };
//! let mut index = SearchIndex::default();
//! index.put(
//!     &SourceText { id: "mail".into(), description: String::new() },
//!     &[tool("send_message", "Send an email message"), tool("delete_message", "Delete a message from the mailbox")],
//! );
//!
//! let hits = index.search("get rid of that mail", 5);
//! assert_eq!(&*hits[0].key, "delete_message");
//! assert!(hits[0].matches.iter().any(|term_match| term_match.kind == MatchKind::Synonym));
//! ```
//!
//! How a request becomes hits:
//!
//! 1. `analysis` splits text into tokens and stems them. `index` stores the terms of every tool with BM25F impacts.
//! 2. `query` parses the request into terms and expands each: other words of the same root, synonyms, types of values,
//!    and translations from the `glossary`. Only the best expansion of a word counts. `concept` adds what the request is
//!    about and what is to be done.
//! 3. The impacts of all terms are summed per tool. Of the best tools, those are selected that together cover the request.
//! 4. Past requests ([`SearchIndex::record_use`]) and embeddings, if there are any ([`SearchIndex::with_embeddings`]), add
//!    bounded scores of their own.
//!
//! docs/search.md describes how the quality is measured; `bench/search/eval` measures it.

mod accumulator;
mod analysis;
mod concept;
mod document;
mod glossary;
mod history;
mod index;
mod owned_history;
mod query;
#[cfg(test)]
mod testing;

pub use document::{ParamText, SourceText, ToolText};
pub use history::MAX_PAST_REQUESTS;
pub use index::search_index::SearchIndex;
pub use query::{
    parsed_query::MatchKind,
    search::{Hit, TermMatch},
    semantic::MAX_EMBEDDED_CHARS,
};
