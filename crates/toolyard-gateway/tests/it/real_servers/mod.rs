//! Real servers over every transport and in every MCP revision they support, through the client and the bridge.
//!
//! `scripts/parts` installs the servers. A test whose server is missing fails and says so.

mod back_channel;
mod caller_interaction;
mod content;
mod content_changes;
mod everything_server;
mod lossless;
mod readiness;
mod revision_detection;
mod server_matrix;
mod shutdown;
mod test_caller;
