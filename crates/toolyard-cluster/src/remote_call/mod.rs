//! One tool call over an [`Exchange`](toolyard_core::Exchange): a process accepts it, another process or a worker executes it.
//!
//! The exchange opens with the request. The executor answers with any number of messages (progress, logs, input requests,
//! signs of activity) and ends with the outcome; the caller sends answers to input requests. A simple call is one message in
//! each direction. Dropping the exchange cancels the call.
//!
//! - The side that waits: `caller_side`
//! - The side that executes: `executor_side`, with `received_call` (the request becomes a context), `remote_caller` (stands for
//!   the caller there) and `outbox` (what it has to say)
//! - The messages: `wire`
//!
//! Messages are JSON. A receiver ignores kinds of messages and fields that it does not know, so that processes of two versions
//! work together during an update. A change that an old receiver must not ignore gets a new version of requests; an
//! executor refuses versions that it does not know, before it calls anything.
//!
//! The presented token of a caller does not cross: it stays in the process that received it.

mod caller_side;
mod executor_side;
mod outbox;
mod received_call;
mod remote_caller;
mod replayed_exchange;
#[cfg(test)]
mod tests;
mod wire;

pub use caller_side::{CallTarget, await_outcome, call_remote, encode_request};
pub use executor_side::{LocalTools, ToolCallService};
pub(crate) use replayed_exchange::ReplayedExchange;
pub use wire::request::TOOL_CALL_SERVICE;
