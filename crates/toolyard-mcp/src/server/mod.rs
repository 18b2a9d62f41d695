//! Serves any [`toolyard_core::ToolService`] over MCP: stdio and Streamable HTTP, both protocol eras on one endpoint.
//!
//! A [`Door`] is what is served: tools, content, and what is not ready yet. [`McpServer`] answers requests at its doors;
//! [`serve_http`] and [`serve_stdio`] bring them.

mod about;
mod answer;
mod asked;
mod clients;
mod config;
mod content;
mod content_call;
mod duplex;
mod era;
mod http;
mod line;
mod listen;
mod log_level;
mod mcp_server;
mod methods;
mod params;
mod parked;
mod questions;
mod room;
mod seal;
mod session;
mod speaker;
mod state;
mod stdio;
mod tool_call;
mod tool_list;
mod work;

pub use config::{Door, Readiness, ServedEras, ServerConfig, ServerLimits};
pub use content::{ContentEvent, ContentKind, ContentKinds, ContentRequest, ContentService};
pub use http::{Access, AccessToken, HttpConfig, PageAnswer, PageBody, PageRequest, Pages, serve_http};
pub use mcp_server::{McpServer, ServeError};
pub use seal::{SessionKeyError, SessionKeys};
pub use stdio::serve_stdio;
