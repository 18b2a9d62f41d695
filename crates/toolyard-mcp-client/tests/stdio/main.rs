//! The stdio transport with real processes: messages, misbehaving servers, and process trees that must not survive.

#![expect(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test helper fails its test")]

mod messages;
mod misbehaving_servers;
mod process_cleanup;
mod test_directory;
