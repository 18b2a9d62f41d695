//! Agents and their runs: definitions, conversations, approvals, and the journal and log that a run is resumed from.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod conversations;
pub(crate) mod journal;
pub(crate) mod run_log;
