//! The store on both engines: what it keeps, and an audit log in which every change is detected.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod audit;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
