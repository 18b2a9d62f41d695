//! Tools, calls of tools, and what they return.
//!
//! - What a tool is: [`definition`], [`schema`], [`hints`], [`capability`], [`source`], [`scope`], [`name_claim`], [`pattern`], [`spec_check`]
//! - Calling one: [`calls`]
//! - What a call returns: [`results`]

pub(crate) mod calls;
pub(crate) mod capability;
pub(crate) mod definition;
pub(crate) mod hints;
pub(crate) mod name_claim;
pub(crate) mod pattern;
pub(crate) mod results;
pub(crate) mod schema;
pub(crate) mod scope;
pub(crate) mod source;
pub(crate) mod spec_check;
