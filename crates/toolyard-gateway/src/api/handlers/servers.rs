//! `/api/v1/servers`: the upstream MCP servers.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use toolyard_core::redact;
use toolyard_mcp_client::{
    ApprovedTool, ManagedServer, ServerState, ToolOffer,
    config::{HttpKind, TransportConfig},
};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    agents::ApiError,
    api::{
        ApiState,
        error_code::ErrorCode,
        extract::{ApiPath, OperatorOnly},
        openapi::ErrorBody,
        response::{ApiResult, json_of},
    },
};

/// What the failure of a server says that requires credentials.
const UNAUTHORIZED: &str = "HTTP status 401";
const SIGN_IN_HINT: &str =
    "only HTTP servers have one; browsers must reach this gateway at `[serve] public_url`";

/// An upstream MCP server.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerView {
    /// Its name.
    pub name: String,
    /// `disabled`, `configured`, `stopped`, `starting`, `ready`, `degraded`, `stopping` or `down`.
    pub state: String,
    /// `stdio`, `http` or `sse`.
    pub transport: String,
    /// Whether its declarations about the effects of its tools are believed.
    pub trusted: bool,
    /// Number of tools that may be used.
    pub tools: usize,
    /// Number of instances that belong to one caller each.
    pub private_instances: usize,
    /// The MCP revision of its session, if it is connected.
    pub revision: Option<String>,
    /// What is wrong with the server or with some of its tools.
    pub problem: Option<String>,
    /// Number of tools that await the operator's approval.
    pub awaiting_approval: usize,
    /// Names of the tools that await approval.
    pub awaiting_approval_tools: Vec<String>,
    /// Whether the server refuses the operator's credentials, or that there are none.
    pub needs_sign_in: bool,
}

/// A page at which the operator signs in to a server.
#[derive(Debug, Serialize, ToSchema)]
struct SignInPage {
    /// Valid for ten minutes and one sign-in.
    url: String,
}

/// All servers.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    /// By name.
    pub servers: Vec<ServerView>,
    /// Always null: the list is whole.
    pub next: Option<String>,
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_servers))
        .routes(routes!(show_server))
        .routes(routes!(sign_in_to_server))
}

/// Lists the upstream MCP servers.
#[utoipa::path(get, path = "/servers", tag = "servers", responses((status = 200, body = ServerList)))]
async fn list_servers(State(state): State<ApiState>) -> ApiResult {
    let servers = state.servers.iter().flat_map(|manager| manager.servers());
    let mut servers: Vec<ServerView> = servers.map(|server| ServerView::of(&server)).collect();
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(json_of(StatusCode::OK, &ServerList { servers, next: None }))
}

/// Shows an upstream MCP server.
#[utoipa::path(get, path = "/servers/{name}", tag = "servers", params(("name" = String, Path)),
    responses((status = 200, body = ServerView), (status = 404, body = ErrorBody)))]
async fn show_server(State(state): State<ApiState>, ApiPath(name): ApiPath<String>) -> ApiResult {
    Ok(json_of(StatusCode::OK, &ServerView::of(&*find_server(&state, &name)?)))
}

pub(super) fn find_server(state: &ApiState, name: &str) -> Result<Arc<ManagedServer>, ApiError> {
    let server = state.servers.as_ref().and_then(|manager| manager.server(name));
    server.ok_or_else(|| {
        ApiError::not_found(ErrorCode::ServerNotFound, format!("server `{name}` does not exist"))
    })
}

/// Begins a sign-in of the operator at a server, whose tokens all callers share. Operator only.
#[utoipa::path(post, path = "/servers/{name}/sign-in", tag = "servers", params(("name" = String, Path)),
    responses((status = 200, body = SignInPage), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
async fn sign_in_to_server(
    _: OperatorOnly,
    State(state): State<ApiState>,
    ApiPath(name): ApiPath<String>,
) -> ApiResult {
    let config = find_server(&state, &name)?.config().clone();
    let not_offered = || {
        let message = format!("server `{name}` has no sign-in here");
        ApiError {
            hint: Some(SIGN_IN_HINT.to_owned()),
            ..ApiError::not_found(ErrorCode::SignInNotOffered, message)
        }
    };
    let sign_ins = state.operator_sign_ins.clone().ok_or_else(not_offered)?;
    let begun = tokio::task::spawn_blocking(move || sign_ins.begin_operator_sign_in(&config)).await;
    let link = begun.ok().flatten().ok_or_else(not_offered)?;
    Ok(json_of(StatusCode::OK, &SignInPage { url: link.url().to_owned() }))
}

impl ServerView {
    pub(super) fn of(server: &ManagedServer) -> Self {
        let (config, approvals, state) = (server.config(), server.tool_approvals(), server.state());
        let failure = match &state {
            ServerState::Degraded { reason, .. } | ServerState::Down { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        let is_http = matches!(&config.transport, TransportConfig::Http { .. });
        let needs_sign_in = is_http && failure.as_ref().is_some_and(|failure| failure.contains(UNAUTHORIZED));
        let is_offered = |tool: &ApprovedTool| server.offer(&tool.spec) == ToolOffer::Offered;
        Self {
            needs_sign_in,
            name: config.id.to_string(),
            state: state.label().to_owned(),
            transport: match &config.transport {
                TransportConfig::Stdio { .. } => "stdio",
                TransportConfig::Http { kind: HttpKind::Sse, .. } => "sse",
                TransportConfig::Http { .. } => "http",
            }
            .to_owned(),
            trusted: config.trusted,
            tools: approvals.approved().iter().filter(|tool| is_offered(tool)).count(),
            awaiting_approval: approvals.quarantined.len(),
            awaiting_approval_tools: approvals.quarantined.iter().map(|tool| tool.name.clone()).collect(),
            private_instances: server.private_instances(),
            revision: server.live_session().map(|session| session.revision().to_owned()),
            problem: failure.or_else(|| approvals.problem_summary()).map(|text| redact(&text).into_owned()),
        }
    }
}
