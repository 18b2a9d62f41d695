//! The MCP server over real sockets and pipes: sessions, input requests, cancellation, notifications, hostile clients.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic fails the test, as intended"
)]

mod calls;
mod cancellation;
mod change_notifications;
mod client;
mod cluster;
mod fast_path;
mod hidden_text;
mod hostile;
mod input_requests;
mod legacy_sse;
mod lists;
mod malformed_peers;
mod memory_cluster;
mod modern_input_requests;
mod reload;
mod routes;
mod sessions;
mod shutdown;
mod sign_in;
mod stdio;
mod telemetry;
mod test_server;
mod tools;
