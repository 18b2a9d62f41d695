//! Real servers over every transport and in every MCP revision they support, through the client and the bridge.
//!
//! `scripts/parts` installs the servers. A test whose server is missing fails and says so.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a panic in a test helper fails the test, as intended"
)]

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
#[path = "../support/mod.rs"]
mod support;
mod test_caller;
