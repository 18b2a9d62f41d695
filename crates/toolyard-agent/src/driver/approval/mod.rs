//! Approvals: `store.rs` reads and writes approval requests and decisions, `handling.rs` is what the driver does with them.
//! The first decision counts, wherever it is made.

mod handling;
pub(super) mod store;
