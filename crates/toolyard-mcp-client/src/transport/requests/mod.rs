//! The requests of one connection.
//!
//! - [`pending`]: matches responses to requests and queues everything else that the server sends.
//! - [`in_flight`]: resets idle timeouts on progress and finds the caller that a server message belongs to.
//! - [`recipient`]: that decision as a pure function.

pub(crate) mod in_flight;
pub(crate) mod pending;
mod recipient;
