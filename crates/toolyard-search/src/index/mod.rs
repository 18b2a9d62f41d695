//! The inverted index: which terms occur in which tools, and how much each says about the tool.
//!
//! [`analyzer`] turns tool definitions into weighted terms by [`field`]; [`vocabulary`] holds the postings of every term;
//! [`search_index`] adds and removes the tools of a source.

pub(crate) mod analyzer;
pub(crate) mod field;
pub(crate) mod search_index;
pub(crate) mod vocabulary;
