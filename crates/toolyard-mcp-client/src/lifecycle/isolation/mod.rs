//! Private instances of a server: its state is not shared between callers that are told apart.
//!
//! - [`scope`]: which instance serves a call.
//! - [`pool`]: which instance is used, started or stopped, as a state machine without I/O.
//! - [`instances`]: starts and stops what the pool decides.
//! - [`role`]: what differs between the shared instance of a server and a private one.
//! - [`token_hints`]: errors of servers whose callers get tokens from their own tokens.

pub(super) mod instances;
pub(crate) mod pool;
pub(super) mod role;
mod scope;
mod token_hints;
