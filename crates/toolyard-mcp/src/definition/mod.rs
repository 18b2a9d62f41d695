//! Tool definitions: what is usable of them, their canonical form, their pins, and how two of them differ.
//!
//! Everything here is a pure decision over what a server sent:
//!
//! - `judge`: one definition is usable or quarantined with the reason; the others of its list are not touched by it.
//! - `canonical`: what a definition says once its spelling is taken away, and its hash.
//! - `pins`: which tools may serve, given what was approved before.
//! - `difference`: how two definitions differ, in lines that a person reads.

mod canonical;
mod tree;

pub use tree::TreeError;
