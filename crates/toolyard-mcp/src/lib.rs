//! Everything that speaks the Model Context Protocol, and nothing else does.
//!
//! - [`wire`]: the JSON-RPC envelope over raw JSON, framing, hard limits. Payloads are never rewritten.
//! - [`client`]: connections to servers (stdio, Streamable HTTP, HTTP+SSE) in both protocol eras, and the manager that
//!   starts them when they are needed.
//! - [`config`]: `mcp.json` and the formats of the clients people already use.
//! - [`definition`]: what a tool definition says, whether it may serve, and how two of them differ.
//! - [`cache`]: what is remembered of servers between processes.

pub mod cache;
pub mod client;
pub mod config;
pub mod definition;
mod shelf;
pub mod wire;
