//! What belongs to a run besides its steps.
//!
//! - `run_log`: the events of a run, in order
//! - `approvals`: approval requests and decisions

mod approvals;
mod run_log;
