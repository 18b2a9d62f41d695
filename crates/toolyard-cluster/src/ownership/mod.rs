//! One owner for each session with a stateful server. A lease in the store decides who owns it; calls that arrive at another
//! process are forwarded to the owner.
//!
//! - `placement` chooses who should take a free session: a pure function of its name and the members.
//! - `held` knows the sessions of this process, until when it may act on them, and who has used them. Pure.
//! - `owners` takes, renews and loses leases, and finds the owner of a session.
//! - `service` answers the calls that other processes forward.
//! - `tool` is a tool whose calls go to the owner.

mod held;
mod owners;
mod placement;
mod service;
#[cfg(test)]
mod simulation_tests;
mod tool;

pub use owners::{OwnershipSettings, OwnershipStatistics, SESSION_PREFIX, SessionOwners};
pub use service::{OWNED_CALL_SERVICE, OwnedCallService};
pub use tool::{OwnedTool, OwnedTools};
