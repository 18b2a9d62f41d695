//! Everything that speaks the Model Context Protocol, and nothing else does.
//!
//! - [`wire`]: the JSON-RPC envelope over raw JSON, framing, hard limits. Payloads are never rewritten.
//! - [`client`]: connections to servers (stdio, Streamable HTTP, HTTP+SSE) in both protocol eras, and the manager that
//!   starts them when they are needed.
//! - [`server`]: serves tools, prompts, resources and skills to clients of both eras.
//! - [`bridge`]: all servers behind the door as one.
//! - [`config`]: `mcp.json` and the formats of the clients people already use.
//! - [`definition`]: what a tool definition says, whether it may serve, and how two of them differ.
//! - [`cache`]: what is remembered of servers between processes.

pub mod bridge;
pub mod cache;
pub mod client;
pub mod config;
pub mod definition;
pub mod server;
mod shelf;
pub mod wire;
