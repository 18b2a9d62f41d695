//! Serves any [`toolyard_core::ToolService`] over MCP: stdio and Streamable HTTP, both protocol eras on one endpoint.
//!
//! A [`Door`] is what is served: tools, content, and what is not ready yet. [`McpServer`] answers requests at its doors;
//! [`serve_http`] and [`serve_stdio`] bring them.

mod answer;
mod config;
mod content;
mod http;
mod line;
mod log_level;
mod mcp_server;
mod params;
mod questions;
mod seal;
mod session;
mod speaker;
mod stdio;
mod work;

pub use config::{Door, Readiness, ServedEras, ServerConfig, ServerLimits};
pub use content::{ContentEvent, ContentKind, ContentKinds, ContentRequest, ContentService};
pub use http::{Access, AccessToken, HttpConfig, serve_http};
pub use mcp_server::{McpServer, ServeError};
pub use seal::{SessionKeyError, SessionKeys};
pub use stdio::serve_stdio;
