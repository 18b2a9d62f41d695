//! Processes that are killed or paused, and stores that fail, while something is written.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod audit_outage;
#[path = "../common/mod.rs"]
mod common;
mod kills;
mod outage_log;
mod postgres_server;
