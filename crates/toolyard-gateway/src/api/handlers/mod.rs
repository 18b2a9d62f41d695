//! The handlers of `/api/v1`, besides those of runs and approvals.

pub(super) mod agents;
pub(super) mod audit;
pub(super) mod cluster;
pub(super) mod import;
pub(super) mod keyed_calls;
pub(super) mod overview;
pub(super) mod results;
pub(super) mod server_changes;
pub(super) mod servers;
pub(super) mod settings;
pub(super) mod tool_calls;
pub(super) mod tools;
