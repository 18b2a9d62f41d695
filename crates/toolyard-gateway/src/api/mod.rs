//! The HTTP API beside MCP: `/api/v1`, the OpenAI-compatible `/v1`, and `/runs`, as one axum router.
//!
//! ```text
//! mod.rs         HttpApi: what is served, as routes of the MCP server or as a router for an application of one's own
//! router.rs      the routes, their layers, and what answers to unknown paths and methods
//! extract.rs     reads requests; what cannot be read is refused in the form of the API
//! response.rs    responses of handlers as axum responses, and these as responses of the MCP server
//! http_caller.rs the caller of a tool over the API; caller_access.rs what callers with credentials of their own may do
//! request_id.rs  numbers requests for logs; trace.rs reports them to telemetry
//! pagination.rs  pages of long lists; queries.rs has the parameters in queries
//! openapi.rs     the OpenAPI document; error_code.rs has the codes of errors
//! handlers/      the handlers of /api/v1, besides those of runs and approvals
//! metrics.rs     /metrics for Prometheus
//! ```

mod caller_access;
pub(crate) mod error_code;
pub(crate) mod extract;
mod handlers;
mod http_caller;
mod metrics;
pub(crate) mod openapi;
pub(crate) mod pagination;
mod queries;
mod request_id;
pub(crate) mod response;
mod router;
mod trace;

use std::{fmt, sync::Arc};

use axum::{Router, body::Body, extract::DefaultBodyLimit, middleware::map_response};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use toolyard_core::{BoxFuture, CallerIdentity};
use toolyard_hub::ToolHub;
use toolyard_mcp_client::McpManager;
use toolyard_mcp_server::{AccessToken, HttpRoutes, McpServer, RouteRequest, RouteResponse};
use toolyard_telemetry::metrics::Metrics;
use tower::ServiceExt as _;

pub use self::trace::StartsNoTrace;
pub(crate) use self::trace::traceparent;
pub use self::{
    extract::{AuthenticatedCaller, OperatorAccess},
    handlers::{
        agents::AgentList,
        audit::{AuditPage, StatisticsList},
        overview::{Overview, Runs, SourceOverview, Tokens, ToolOverview},
        server_changes::{HeldTool, ServerDetails},
        servers::{ServerList, ServerView},
        tool_calls::ToolCallResult,
        tools::{ToolDetails, ToolList, ToolView},
    },
    metrics::MetricsAccess,
};
use self::{
    handlers::keyed_calls::KeyedCalls,
    metrics::{METRICS_PATH, ScrapeCache},
    openapi::{DOCUMENT_PATH, EVENT_SCHEMA_PATH},
    response::{into_route_response, keep_event_streams_alive},
};
use crate::{
    admin::{AdminProvider, ClusterProvider, OperatorSignIns, SettingsProvider},
    agents::{AgentApi, AgentService, ApiError},
    surface::MainTools,
};

/// Bodies of requests to a router that an application mounts; the MCP server has a limit of its own.
const MAX_BODY_BYTES: usize = 4 << 20;

/// The parts of Toolyard that the API exposes. Routes of parts that are absent answer 404.
#[derive(Debug, Clone, Default)]
pub struct HttpApiConfig {
    /// The agents and their runs.
    pub agents: Option<AgentService>,
    /// The tools.
    pub hub: Option<Arc<ToolHub>>,
    /// The tools that clients may call: those of the main endpoint ([`GatewayConfig::main_tools`](crate::GatewayConfig::main_tools)).
    pub main_tools: Option<MainTools>,
    /// The upstream servers.
    pub servers: Option<Arc<McpManager>>,
    /// Statistics, the audit log and the definitions of agents.
    pub admin: Option<Arc<dyn AdminProvider>>,
    /// The settings in effect.
    pub settings: Option<Arc<dyn SettingsProvider>>,
    /// Lets the operator sign in to upstream servers.
    pub operator_sign_ins: Option<Arc<dyn OperatorSignIns>>,
    /// The cluster that the gateway belongs to.
    pub cluster: Option<Arc<dyn ClusterProvider>>,
    /// Whether HTTP clients may add, change and remove agents. That is as powerful as editing the settings.
    pub clients_may_change_agents: bool,
    /// Counts operations, for the overview and `/metrics`, which answer 404 without it. The hub must report to it: see
    /// [`HubConfig::telemetry`](toolyard_hub::HubConfig::telemetry).
    pub metrics: Option<Arc<Metrics>>,
    /// Who may read `/metrics`.
    pub metrics_access: MetricsAccess,
    /// A token that opens `/metrics` and nothing else. The MCP server checks it; [`HttpApi::router`] does not.
    pub metrics_token: Option<AccessToken>,
    /// The MCP server beside this API, whose sessions and requests are in `/metrics`.
    pub mcp_server: Option<Arc<McpServer>>,
}

/// The HTTP API beside MCP.
///
/// It is served by the MCP server, as [`HttpConfig::routes`](toolyard_mcp_server::HttpConfig::routes), or mounted in another
/// axum application:
///
/// ```
/// use toolyard_gateway::{HttpApi, HttpApiConfig};
///
/// let api = HttpApi::new(HttpApiConfig::default());
/// let application: axum::Router = axum::Router::new().nest("/toolyard", api.router());
/// ```
pub struct HttpApi {
    routes: Router,
    /// The same for the MCP server, which has limited bodies already.
    unlimited_routes: Router,
    agents: Option<Arc<AgentApi>>,
    metrics_access: MetricsAccess,
    metrics_token: Option<AccessToken>,
    pages: Vec<Pages>,
}

/// Pages that are served beside the API and authenticate their visitors themselves.
struct Pages {
    routes: Router,
    is_page: fn(&str) -> bool,
}

/// What handlers share.
#[derive(Debug, Clone)]
pub(crate) struct ApiState {
    pub(crate) agents: Option<Arc<AgentApi>>,
    hub: Option<Arc<ToolHub>>,
    main_tools: Option<MainTools>,
    servers: Option<Arc<McpManager>>,
    admin: Option<Arc<dyn AdminProvider>>,
    settings: Option<Arc<dyn SettingsProvider>>,
    operator_sign_ins: Option<Arc<dyn OperatorSignIns>>,
    cluster: Option<Arc<dyn ClusterProvider>>,
    clients_may_change_agents: bool,
    metrics: Option<Arc<Metrics>>,
    metrics_access: MetricsAccess,
    scrapes: Arc<ScrapeCache>,
    mcp_server: Option<Arc<McpServer>>,
    keyed_calls: KeyedCalls,
}

impl HttpApi {
    /// Builds the routes.
    pub fn new(config: HttpApiConfig) -> Self {
        let (metrics_access, metrics_token) = (config.metrics_access, config.metrics_token);
        let agents = config.agents.map(|agents| Arc::new(AgentApi::new(agents)));
        let routes = router::build(ApiState {
            agents: agents.clone(),
            hub: config.hub,
            main_tools: config.main_tools,
            servers: config.servers,
            admin: config.admin,
            settings: config.settings,
            operator_sign_ins: config.operator_sign_ins,
            cluster: config.cluster,
            clients_may_change_agents: config.clients_may_change_agents,
            metrics: config.metrics,
            scrapes: Arc::default(),
            metrics_access,
            mcp_server: config.mcp_server,
            keyed_calls: KeyedCalls::default(),
        });
        let unlimited_routes = routes.clone().layer(DefaultBodyLimit::disable());
        Self { routes, unlimited_routes, agents, metrics_access, metrics_token, pages: Vec::new() }
    }

    /// Also serves pages for people, at the paths that `is_page` selects. The MCP server requires no token for them: they
    /// authenticate their visitors themselves. May be called for several kinds of pages. Not part of [`HttpApi::router`].
    #[must_use]
    pub fn with_pages(mut self, routes: Router, is_page: fn(&str) -> bool) -> Self {
        self.pages.push(Pages { routes: routes.layer(DefaultBodyLimit::disable()), is_page });
        self
    }

    fn pages(&self, path: &str) -> Option<&Router> {
        self.pages.iter().find(|pages| (pages.is_page)(path)).map(|pages| &pages.routes)
    }

    #[cfg(test)]
    pub(crate) fn of_agents(agents: AgentService) -> Self {
        Self::new(HttpApiConfig { agents: Some(agents), ..HttpApiConfig::default() })
    }

    /// The routes, to be mounted in an axum application.
    ///
    /// The router authenticates nobody: the application does that in a layer of its own, and tells callers apart by a
    /// [`AuthenticatedCaller`] in the extensions of each request. Without one, all requests are of the same caller. Tickets for
    /// event streams are accepted by the MCP server only. Event streams of runs end with their run, so an application that
    /// shuts down gracefully closes them itself.
    pub fn router(&self) -> Router {
        let limit = DefaultBodyLimit::max(MAX_BODY_BYTES);
        self.routes.clone().layer(map_response(keep_event_streams_alive)).layer(limit)
    }
}

impl fmt::Debug for HttpApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpApi").finish_non_exhaustive()
    }
}

impl HttpRoutes for HttpApi {
    fn matches(&self, path: &str) -> bool {
        let is_api = |prefix: &&str| {
            path.strip_prefix(*prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        ["/api", "/v1", "/runs", METRICS_PATH].iter().any(is_api) || self.pages(path).is_some()
    }

    fn is_public(&self, path: &str) -> bool {
        [DOCUMENT_PATH, EVENT_SCHEMA_PATH].contains(&path)
            || self.metrics_access == MetricsAccess::Open && path == METRICS_PATH
            || self.pages(path).is_some()
    }

    fn token_holder(&self, path: &str, token: &str) -> Option<Arc<CallerIdentity>> {
        self.metrics_token.as_ref().filter(|_| path == METRICS_PATH)?.holder(token)
    }

    fn ticket_holder(&self, method: &Method, path: &str, query: &str) -> Option<Arc<CallerIdentity>> {
        self.agents.as_ref()?.ticket_holder(method, path, query)
    }

    fn handle(&self, request: RouteRequest) -> BoxFuture<'_, RouteResponse> {
        Box::pin(async move {
            let request = match axum_request(request) {
                Ok(request) => request,
                Err(error) => return error.into(),
            };
            let routes = self.pages(request.uri().path()).unwrap_or(&self.unlimited_routes);
            let Ok(response) = routes.clone().oneshot(request).await;
            into_route_response(response).await
        })
    }

    fn error_body(&self, status: StatusCode, message: &str) -> Bytes {
        Bytes::from(ApiError::refused(status, message).to_json().to_string())
    }
}

/// An authenticated request of the MCP server as a request to the router.
fn axum_request(request: RouteRequest) -> Result<Request<Body>, ApiError> {
    let RouteRequest { method, path, query, headers, identity, body } = request;
    let path = match path.trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let uri: Uri = uri.parse().map_err(|_| ApiError::bad_request("the path cannot be read"))?;
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request.extensions_mut().insert(AuthenticatedCaller(identity));
    Ok(request)
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
