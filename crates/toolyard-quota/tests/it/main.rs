//! Quotas of one process, and of several that share a store, also while it fails.

#![expect(clippy::unwrap_used, reason = "a panic in a test helper fails the test, as intended")]

mod faults;
mod local;
mod shared;
mod store_double;
