//! Streamable HTTP: all revisions on one endpoint, and optionally the HTTP+SSE transport of 2024-11-05.
//!
//! `serve` accepts connections, `connection` routes their requests, `health` tells load balancers whether to send any, `post`
//! handles MCP messages, `body`, `event_stream` and `response` encode what is sent back.

mod access_check;
mod activity_stream;
mod body;
mod close_listener;
mod config;
mod connection;
mod event_stream;
mod header_validation;
mod health;
mod legacy_sse;
mod post;
mod request_body;
mod response;
mod routes;
mod serve;

pub(crate) use config::anonymous;
pub use config::{Access, AccessRules, AccessToken, HttpConfig, SharedAccessRules};
pub use health::{ReadinessCheck, ReadinessProbe};
pub use routes::{HttpRoutes, RouteBody, RouteRequest, RouteResponse};
pub use serve::serve_http;
