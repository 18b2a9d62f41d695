//! Finds the tools that a request is about, in any language, without a model.

mod document;
#[cfg(feature = "embedding")]
pub mod embedding;
pub mod lexicon;

pub use document::{ParamText, ToolText};
