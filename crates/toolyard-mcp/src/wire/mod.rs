//! JSON-RPC 2.0 as bytes: envelopes are read, payloads stay raw, and everything has a limit.

mod error;
mod id;
mod limits;
mod message;
mod sse;

pub use error::WireError;
pub use id::RequestId;
pub use limits::WireLimits;
pub use message::{Message, RpcError};
pub use sse::{SseEvent, SseParser};
