//! Streamable HTTP: all revisions on one endpoint, and optionally the HTTP+SSE transport of 2024-11-05.
//!
//! `serve` accepts connections, `connection` routes their requests, `post` handles MCP messages, `body` and `response`
//! encode what is sent back.

mod activity_stream;
mod body;
mod config;
mod connection;
mod guard;
mod header_validation;
mod legacy_sse;
mod post;
mod response;
mod routes;
mod serve;

pub use config::{Access, AccessToken, HttpConfig};
pub use routes::{HttpRoutes, RouteBody, RouteRequest, RouteResponse};
pub use serve::serve_http;
