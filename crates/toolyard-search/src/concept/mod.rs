//! Concepts: what a request is about (`mail`, `spreadsheet`) and what is to be done (`delete`, `reply`), whatever words it
//! uses.
//!
//! People ask in words that no tool definition has: "did the landlord write to me" for `search_emails`. The tables
//! `subjects.txt` and `actions.txt` list, for each concept, words by which names of servers and tools mention it and words
//! and idioms by which requests do. A tool is indexed under a term for each of its concepts, so a request that mentions
//! the subject of a server and the action of a tool finds that tool. A concept is evidence like a synonym: weaker than
//! the word itself.

mod request;
mod table;
mod tool;
mod value;

pub(crate) use request::concept_mentions;
pub(crate) use tool::for_each_tool_concept;

/// Kind of concept; both kinds have weights of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ConceptKind {
    /// What a request is about.
    Subject,
    /// What is to be done.
    Action,
}

/// Whether a term of the index is that of a concept: tokens of texts have no colon.
pub(crate) fn is_concept_term(term: &str) -> bool {
    term.contains(':')
}

/// A concept of the tables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Concept {
    pub(crate) kind: ConceptKind,
    /// Term under which tools are indexed; no token of a text is equal to it.
    pub(crate) term: String,
}
