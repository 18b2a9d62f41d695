//! Several processes that serve the same endpoints behind a load balancer: a client may send anything to any of them.
//!
//! Sessions and sealed states open in every process. But a call runs in one process, which alone can take the response to its
//! input requests, resume it or cancel it. `forwarding` is the side of the process that received the client's message,
//! `peer_service` that of the process with the call.

mod forwarding;
mod peer_messages;
mod peer_service;

pub(crate) use peer_service::CallsForPeers;
pub use peer_service::PEER_SERVICE_NAME;
