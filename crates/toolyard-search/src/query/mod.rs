//! Searching: from the text of a request to ranked tools.
//!
//! [`parser`] turns a request into a [`parsed_query`] of terms and their expansions ([`synonyms`], [`value_types`], the
//! glossary); [`scoring`] finds the best candidates, in a large catalogue with
//! [`pruned_scoring`] over a [`document_window`]; [`selection`] picks tools that together cover the request; [`search`] is the entry point.

mod document_window;
pub(crate) mod parsed_query;
mod parser;
mod pruned_scoring;
mod scoring;
pub(crate) mod search;
mod selection;
mod synonyms;
mod value_types;
