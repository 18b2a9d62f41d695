//! JSON-RPC 2.0 as bytes: envelopes are read, payloads stay raw, and everything has a limit.

mod encode;
mod error;
mod id;
mod limits;
mod lines;
mod message;
mod rpc_error;

pub use encode::{JsonObject, error_response, notification, request, response};
pub use error::WireError;
pub use id::RequestId;
pub use limits::WireLimits;
pub use lines::{Line, LineError, Lines};
pub use message::Message;
pub use rpc_error::RpcError;
