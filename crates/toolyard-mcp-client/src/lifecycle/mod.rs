//! From configured servers to live sessions and tools.
//!
//! - [`manager`]: all configured servers. [`server`]: one of them.
//! - [`state`]: its lifecycle as a state machine. [`supervisor`]: acts on changes, failures and idleness.
//! - [`connect`]: opens a transport. [`handshake`]: negotiates the revision. [`negotiation`]: its decisions.
//! - [`host`]: what servers need from the embedder.
//! - [`caller_sessions`]: further sessions of a server that several callers use at once.
//! - [`isolation`]: instances of a server that belong to one caller each.
//! - [`exclusions`]: tools that the settings exclude, and the names that they release.
//! - [`catalogue_sharing`]: tools that another process learned.
//! - [`refresh`]: reads lists of a running server. [`tool`]: its tools. [`content_request`]: its prompts and resources.

mod back_channel;
mod caller_sessions;
pub(crate) mod catalogue_sharing;
pub(crate) mod connect;
pub(crate) mod connect_error;
pub(crate) mod content_request;
mod exclusions;
mod handshake;
pub(crate) mod host;
pub(crate) mod isolation;
pub(crate) mod manager;
mod negotiation;
mod refresh;
pub(crate) mod server;
pub(crate) mod shared;
pub(crate) mod state;
mod subscriptions;
mod supervisor;
pub(crate) mod tool;
