//! Approvals: `store.rs` reads and writes approval requests and decisions, `session.rs` is what the driver does with them.
//! The first decision counts, wherever it is made.

mod session;
pub(super) mod store;
