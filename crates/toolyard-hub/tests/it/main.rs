//! Calls through the hub: routing, limits, breakers, policies, quotas and records, with scripted tools.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod breaker_log;
mod callers;
mod capability;
mod common;
mod denied;
mod health;
mod isolated;
mod limits;
mod past_requests;
mod policy;
mod properties;
mod quota;
mod simulation;
mod specification;
mod telemetry;
