//! The stdio transport with real processes: messages, misbehaving servers, and process trees that must not survive.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod messages;
mod misbehaving_servers;
mod process_cleanup;
mod test_directory;
