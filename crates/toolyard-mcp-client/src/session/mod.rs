//! One live connection to a server: requests, responses, and what the server asks back.
//!
//! - [`handle`]: [`Session`](handle::Session), what the rest of the crate uses. [`inner`]: what it shares with its tasks.
//! - [`tool_call`]: a call until the server needs no more input.
//! - [`server_messages`]: requests and notifications of the server. [`input_requests`]: those that need input.
//!   [`client_capabilities`]: which input a client can give.
//! - [`elicitation`] reads and fills in forms.
//! - [`change_listener`]: subscriptions of the modern revision. [`protocol_context`]: what every request says about us.

pub(crate) mod change_listener;
pub(crate) mod client_capabilities;
pub(crate) mod elicitation;
pub(crate) mod error;
pub(crate) mod handle;
pub(crate) mod inner;
mod input_requests;
pub(crate) mod operation;
pub(crate) mod protocol_context;
pub(crate) mod server_messages;
pub(crate) mod tool_call;
