//! Finds the tools that a request is about, in any language, without a model.

mod document;
pub mod lexicon;

pub use document::{ParamText, ToolText};
