//! The Model Context Protocol as data: no I/O and no connection.
//!
//! - [`jsonrpc`]: JSON-RPC messages. Envelopes are decoded, payloads stay raw JSON and are never rewritten.
//! - Framing: [`LineReader`] splits a byte stream into messages, within [`WireLimits`].
//! - Results of methods: [`InitializeResult`], [`DiscoverResult`], [`ListPage`], [`CallResult`], [`Progress`].
//! - [`definition`]: validation, canonical form, pins and differences of tool definitions.
//! - [`error_code`]: error codes of JSON-RPC and MCP by name. [`versions`]: the protocol revisions.
//! - [`JsonObject`] writes JSON objects, [`edit_fields`] changes single fields of them.

pub mod definition;
pub mod error_code;
mod framing;
pub mod input_method;
mod json;
pub mod jsonrpc;
mod messages;
pub mod versions;
mod wire_error;

pub use framing::{Line, LineError, LineReader, WireLimits};
pub use json::{FieldEdit, JsonObject, edit_fields, raw_field, text_field};
pub use jsonrpc::{Message, RequestId, ResponseId, RpcError};
pub use messages::{
    CallResult, DiscoverResult, InitializeResult, InputRequired, ListPage, Progress, ResultKind,
    ServerCapabilities, ServerDescription,
};
pub use wire_error::WireError;
