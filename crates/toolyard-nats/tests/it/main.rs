//! Exchanges, workers and long messages over a real NATS server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod exchanges;
mod objects;
mod support;
mod worker_support;
mod workers;
