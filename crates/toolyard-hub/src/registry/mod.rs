//! Registered sources and their tools, as immutable snapshots.
//!
//! - `snapshot`: [`Registry`](snapshot::Registry) and its snapshots; reads never wait for writers.
//! - `name_entry`: the candidates that share one tool name, in order of preference.
//! - `candidate`: one tool of one source.
//! - `registration`: builds the candidates of sources that are registered.
//! - `recent_changes`: the names that the latest changes touched.
//! - `name_suggestions`: "did you mean" for names that do not exist.

pub(crate) mod candidate;
pub(crate) mod name_entry;
pub mod name_suggestions;
mod recent_changes;
pub(crate) mod registration;
pub(crate) mod snapshot;
