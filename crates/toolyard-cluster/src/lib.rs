//! Several Toolyard processes as one: calls between processes, and one owner for each session with a stateful server.
//!
//! What processes send each other goes through [`toolyard_core::Peers`], which another crate implements.
//!
//! - [`remote_call`]: a tool call that enters at one process and is executed by another
//! - [`ownership`]: one owner for each session with a stateful server
//! - [`workers`]: processes that serve their own tools to gateways
//! - [`CallOutcomes`]: what became of calls that other processes execute, for metrics

mod call_outcomes;
pub mod ownership;
pub mod remote_call;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod workers;

pub use call_outcomes::CallOutcomes;
