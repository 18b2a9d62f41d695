//! Registered sources and their tools, as immutable snapshots.
//!
//! - `snapshot`: [`Registry`](snapshot::Registry) and its snapshots; reads never wait for writers.
//! - `name_entry`: the candidates that share one tool name, in order of preference.
//! - `candidate`: one tool of one source.
//! - `name_suggestions`: "did you mean" for names that do not exist.

pub(crate) mod candidate;
pub(crate) mod name_entry;
pub mod name_suggestions;
pub(crate) mod snapshot;
