//! Serves any [`toolyard_core::ToolService`] to MCP clients, over stdio or Streamable HTTP, in all MCP revisions.
//!
//! An [`Endpoint`] combines the services of one URL: tools, and optionally content ([`ContentService`]: prompts, resources,
//! skills). [`McpServer`] serves one or more endpoints; [`serve_http`] and [`serve_stdio`] connect it to clients.
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolyard_core::{
//!     BoxFuture, Catalogue, ClientInfo, RawJson, ServiceCall, ToolError, ToolOutput, ToolService,
//! };
//! use toolyard_mcp_server::{Endpoint, McpServer, ServerConfig, SessionKeys, serve_stdio};
//!
//! #[derive(Debug)]
//! struct Greeter(Arc<Catalogue>);
//!
//! impl ToolService for Greeter {
//!     fn catalogue(&self, _client: &ClientInfo) -> Arc<Catalogue> {
//!         Arc::clone(&self.0)
//!     }
//! #    fn describe(&self, _name: &str, _client: &ClientInfo) -> Option<RawJson> { None }
//! #    fn changed(&self, _seen: u64) -> BoxFuture<'_, u64> { Box::pin(std::future::pending()) }
//!
//!     fn call<'a>(&'a self, _call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
//!         Box::pin(async { Ok(ToolOutput::text("hello")) })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let tools = Arc::new(Greeter(Arc::new(Catalogue { version: 1, tools: Vec::new() })));
//! let config = ServerConfig::new("greeter", "1.0.0", SessionKeys::random()?);
//! let server = Arc::new(McpServer::new(config, Endpoint::new(tools)));
//! // With tokio's `stdin()` and `stdout()` in a program.
//! serve_stdio(server, tokio::io::empty(), tokio::io::sink(), std::future::pending()).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How a request is handled
//!
//! - `http` and `stdio` decode messages and encode responses.
//! - `session` identifies the client. Session ids contain the sealed session state, so replicas share no store.
//! - `dispatch` finds the revision, reads the parameters and calls the method's handler.
//! - `interaction` carries progress, log messages and input requests while a request runs, and suspends or cancels it.
//! - `cluster` forwards what a client sends to one process and another process waits for.

mod cluster;
mod config;
mod content_service;
mod dispatch;
mod endpoint;
mod http;
mod interaction;
mod json_fields;
mod server;
mod session;
mod stdio;

pub use cluster::PEER_SERVICE_NAME;
pub use config::{ServedRevisions, ServerConfig, ServerLimits};
pub use content_service::{ContentCapabilities, ContentEvent, ContentKind, ContentRequest, ContentService};
pub use endpoint::{Endpoint, Readiness};
pub use http::{
    Access, AccessRules, AccessToken, HttpConfig, HttpRoutes, ReadinessCheck, ReadinessProbe, RouteBody,
    RouteRequest, RouteResponse, SharedAccessRules, serve_http,
};
pub use server::{McpServer, ServeError};
pub use session::sealing::{SessionKeyError, SessionKeys};
pub use stdio::serve_stdio;
