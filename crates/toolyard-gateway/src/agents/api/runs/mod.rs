//! Runs of agents and their approvals: start, read, follow, decide, resume and cancel.

pub(super) mod access;
pub(super) mod approvals;
mod arguments;
pub(super) mod bodies;
mod event_stream;
mod events;
pub(super) mod handlers;
pub(super) mod list;
pub(super) mod resume;
pub(super) mod state;
mod steps;
pub(super) mod stream_ticket;

#[cfg(test)]
mod event_stream_tests;
