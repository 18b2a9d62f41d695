//! Workers: processes that serve their own tools to gateways. Workers with one name form a group and share the calls.
//!
//! - The side that serves: `worker` ([`Worker`]), with a limit on concurrent calls
//! - The side of the gateway: `watch` ([`WorkerWatch`]) finds out which tools there are, `tool` ([`WorkerTool`]) calls one
//! - `groups`: which processes of which groups are there, as pure decisions
//! - `message`: what the two sides tell each other besides calls, which are [`remote_call`](crate::remote_call)s
//!
//! What they send goes through [`toolyard_core::WorkerNetwork`] and [`toolyard_core::WorkerTransport`], which another crate
//! implements.

mod groups;
mod message;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tool;
mod watch;
mod worker;

pub use groups::WorkerProcessStatus;
pub use tool::WorkerTool;
pub use watch::{WorkerSink, WorkerWatch};
pub use worker::{ServedTool, Worker};

/// The name under which a process of a group says what it serves.
pub const CATALOGUE_SERVICE: &str = "catalogue";
/// The name under which a process of a group receives calls.
pub const CALL_SERVICE: &str = "call";
