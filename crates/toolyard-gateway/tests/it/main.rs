//! Real servers and clients of every MCP revision: through the client and the bridge, and with the gateway between them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod real_servers;
mod revision_matrix;
mod support;
