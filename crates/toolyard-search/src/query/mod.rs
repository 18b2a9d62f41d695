//! Searching: from the text of a request to ranked tools.
//!
//! [`parser`] turns a request into a [`parsed_query`] of terms and their expansions ([`synonyms`], [`value_types`], the
//! glossary); [`scoring`] finds the best candidates; [`semantic`] adds those that are near in meaning; [`selection`] picks tools that together cover the request; [`search`] is the
//! entry point.

pub(crate) mod parsed_query;
mod parser;
mod scoring;
pub(crate) mod search;
mod selection;
pub(crate) mod semantic;
mod synonyms;
mod value_types;
