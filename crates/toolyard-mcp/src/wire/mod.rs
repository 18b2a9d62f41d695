//! JSON-RPC 2.0 as bytes: envelopes are read, payloads stay raw, and everything has a limit.
//!
//! Bytes become lines ([`Lines`]), lines become messages ([`Message::read`]), and the payload of a message becomes what
//! its method promises ([`ToolsPage`], [`CallResult`], [`InitializeResult`], [`DiscoverResult`], [`Progress`]). Each of
//! these walks over the text once and takes parts out of it as they stand.

mod call_result;
mod content;
mod edit;
mod encode;
mod error;
mod handshake;
mod id;
mod limits;
mod lines;
mod message;
mod progress;
mod rpc_error;
mod sse;
mod tools_page;
mod walk;

pub use call_result::{CallResult, InputRequired, ResultKind};
pub(crate) use edit::{Edit, edited};
pub use encode::{JsonObject, error_response, notification, request, response};
pub use error::WireError;
pub use handshake::{AboutServer, Capabilities, DiscoverResult, InitializeResult};
pub use id::RequestId;
pub use limits::WireLimits;
pub use lines::{Line, LineError, Lines};
pub use message::Message;
pub use progress::Progress;
pub use rpc_error::RpcError;
pub use sse::{SseEvent, SseParser};
pub use tools_page::{CacheScope, Caching, ListPage, ToolsPage};
pub(crate) use walk::{field_of, text_of};
