//! Operator-only routes of `/api/v1/servers`. A model may hold the access token, so the token is not enough.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_core::{ContentHash, StoredDefinition, redact};
use toolyard_mcp_client::{
    CacheError, ManagedServer, QuarantinedTool,
    config::{McpServerConfig, ServerSettings, TransportConfig},
};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::servers::{ServerView, find_server};
use crate::{
    admin::{NewServer, ServerChange, SettingsProvider},
    agents::ApiError,
    api::{
        ApiState,
        error_code::ErrorCode,
        extract::{ApiPath, JsonBody, OperatorOnly, Settings},
        openapi::ErrorBody,
        response::{ApiResult, json_of, no_content},
    },
};

const MAX_LOG_LINES: usize = 200;

/// What the operator decides on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerDetails {
    /// Its command or address, without secrets.
    pub endpoint: String,
    /// The server's instructions, truncated. Clients receive them if the server is trusted.
    pub instructions: Option<String>,
    /// Tools that cannot be called before the operator approves their definitions.
    pub awaiting_approval: Vec<HeldTool>,
    /// Tools whose definitions are invalid, with the reasons.
    pub rejected: Vec<String>,
    /// The latest lines that its program wrote to stderr.
    pub log: Vec<String>,
}

/// A tool whose definition is new or changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HeldTool {
    /// Its name.
    pub name: String,
    /// The hash of the definition.
    pub definition: String,
    /// Why it awaits approval.
    pub reason: String,
    /// How the definition differs from the approved one, as lines. Long values are shortened.
    pub difference: Vec<String>,
    /// The whole definition; null if it is not known any more.
    #[schema(value_type = Option<Object>)]
    pub whole: Option<Value>,
}

/// The definitions to approve, as they were shown.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ApproveBody {
    tools: Vec<ToolApproval>,
}

/// A tool with the hash of the definition that the operator saw.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ToolApproval {
    name: String,
    definition: String,
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(add_server))
        .routes(routes!(change_server))
        .routes(routes!(show_details))
        .routes(routes!(connect_server))
        .routes(routes!(stop_server))
        .routes(routes!(approve_tools))
}

/// Adds an upstream MCP server to the settings, untrusted. The gateway takes it over within seconds. Operator only.
#[utoipa::path(post, path = "/servers", tag = "servers", request_body = NewServer,
    responses((status = 204), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
async fn add_server(
    OperatorOnly(operator): OperatorOnly,
    Settings(settings): Settings,
    JsonBody(server): JsonBody<NewServer>,
) -> ApiResult {
    settings.add_server(&server, &operator.audit_name()).await?;
    Ok(no_content())
}

/// Enables, disables, trusts or no longer trusts a server, in the settings. The gateway takes it over within seconds. Operator only.
#[utoipa::path(patch, path = "/servers/{name}", tag = "servers", params(("name" = String, Path)), request_body = ServerChange,
    responses((status = 204), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
async fn change_server(
    OperatorOnly(operator): OperatorOnly,
    State(state): State<ApiState>,
    Settings(settings): Settings,
    ApiPath(name): ApiPath<String>,
    JsonBody(change): JsonBody<ServerChange>,
) -> ApiResult {
    find_server(&state, &name)?;
    settings.change_server(&name, change, &operator.audit_name()).await?;
    Ok(no_content())
}

/// Shows a server's command or address, the definitions that await approval, and its log. Operator only.
#[utoipa::path(get, path = "/servers/{name}/details", tag = "servers", params(("name" = String, Path)),
    responses((status = 200, body = ServerDetails), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
async fn show_details(
    _: OperatorOnly,
    State(state): State<ApiState>,
    ApiPath(name): ApiPath<String>,
) -> ApiResult {
    let server = find_server(&state, &name)?;
    let definitions = server.definitions().await.map_err(ApiError::store_unavailable)?;
    Ok(json_of(StatusCode::OK, &ServerDetails::of(&server, &definitions)))
}

/// Connects a server and reads its tools. It keeps running until it is idle. Operator only.
#[utoipa::path(post, path = "/servers/{name}/connect", tag = "servers", params(("name" = String, Path)),
    responses((status = 200, body = ServerView), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody, description = "the server cannot be reached or started")))]
async fn connect_server(
    _: OperatorOnly,
    State(state): State<ApiState>,
    ApiPath(name): ApiPath<String>,
) -> ApiResult {
    let server = find_server(&state, &name)?;
    let Some(manager) = state.servers.clone() else { return Ok(no_content()) };
    // The operator does not wait until a failed server would be tried again.
    let connected = manager.connect(&name).await;
    connected.map_err(|error| {
        ApiError::failed(ErrorCode::ServerUnreachable, format!("failed to connect server `{name}`: {error}"))
    })?;
    Ok(json_of(StatusCode::OK, &ServerView::of(&server)))
}

/// Stops a server and closes its sessions. The next call of one of its tools starts it again. Operator only.
#[utoipa::path(post, path = "/servers/{name}/stop", tag = "servers", params(("name" = String, Path)),
    responses((status = 200, body = ServerView), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
async fn stop_server(
    _: OperatorOnly,
    State(state): State<ApiState>,
    ApiPath(name): ApiPath<String>,
) -> ApiResult {
    let server = find_server(&state, &name)?;
    // Goes on if the client disconnects, so that nothing stays half stopped.
    let stopped = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.stop().await }
    });
    stopped.await.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(json_of(StatusCode::OK, &ServerView::of(&server)))
}

/// Approves tool definitions by hash: a tool whose definition has changed since `details` was read still awaits approval. Operator only.
#[utoipa::path(post, path = "/servers/{name}/approve", tag = "servers", params(("name" = String, Path)), request_body = ApproveBody,
    responses((status = 200, body = ServerView), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "a definition changed meanwhile; nothing was approved")))]
async fn approve_tools(
    OperatorOnly(operator): OperatorOnly,
    State(state): State<ApiState>,
    Settings(settings): Settings,
    ApiPath(name): ApiPath<String>,
    JsonBody(body): JsonBody<ApproveBody>,
) -> ApiResult {
    let server = find_server(&state, &name)?;
    if body.tools.is_empty() {
        return Err(ApiError::invalid_param("tools", "`tools` is empty"));
    }
    let approvals = server.tool_approvals();
    let held = |seen: &ToolApproval| {
        let is_seen = |hash: ContentHash| hash.to_string() == seen.definition;
        let mut held = approvals.quarantined.iter();
        held.find(|tool| tool.name == seen.name && is_seen(tool.pin))
            .map(|tool| (tool.name.clone(), tool.pin))
    };
    let changed = |seen: &ToolApproval| {
        let ToolApproval { name: tool, definition } = seen;
        let message = format!(
            "tool `{tool}` of server `{name}` does not await approval with definition {definition}; nothing was approved"
        );
        let hint = Some("read the definition again: it has changed, or is approved by now".to_owned());
        ApiError { hint, ..ApiError::conflict(ErrorCode::DefinitionChanged, message) }
    };
    let tools: Result<Vec<_>, ApiError> =
        body.tools.iter().map(|seen| held(seen).ok_or_else(|| changed(seen))).collect();
    let tools = tools?;
    let by = operator.audit_name();
    // Goes on if the client disconnects, so that what is recorded is done.
    let approved = tokio::spawn({
        let (server, name) = (Arc::clone(&server), name.clone());
        async move { approve(&server, &name, &tools, &*settings, &by).await }
    });
    approved.await.map_err(|error| ApiError::internal(error.to_string()))??;
    Ok(json_of(StatusCode::OK, &ServerView::of(&server)))
}

async fn approve(
    server: &Arc<ManagedServer>,
    name: &str,
    tools: &[(String, ContentHash)],
    settings: &dyn SettingsProvider,
    by: &str,
) -> Result<(), ApiError> {
    for (tool, definition) in tools {
        settings.record_approval(&format!("{tool}@{name}"), *definition, by).await?;
    }
    server.approve(tools).await.map_err(|error| match error {
        CacheError::Store { .. } => ApiError::store_unavailable(error),
        error => ApiError::conflict(ErrorCode::DefinitionChanged, error.to_string()),
    })
}

impl ServerDetails {
    fn of(server: &ManagedServer, definitions: &[StoredDefinition]) -> Self {
        let approvals = server.tool_approvals();
        let whole = |tool: &QuarantinedTool| {
            let stored = definitions.iter().find(|stored| stored.hash == tool.pin)?;
            serde_json::from_str(&redact(stored.definition.get())).ok()
        };
        let clean = |text: &str| redact(text).into_owned();
        let held = approvals.quarantined.iter().map(|tool| HeldTool {
            name: tool.name.clone(),
            definition: tool.pin.to_string(),
            reason: clean(&tool.reason),
            difference: tool.difference.iter().map(|line| clean(line)).collect(),
            whole: whole(tool),
        });
        let rejected = approvals.rejected.iter().map(|tool| match &tool.name {
            Some(name) => clean(&format!("{name}: {}", tool.reason)),
            None => clean(&tool.reason),
        });
        let (_, log) = server.stderr_tail().lines_after(0);
        let skipped = log.len().saturating_sub(MAX_LOG_LINES);
        Self {
            endpoint: endpoint(server.config()),
            instructions: server.content().instructions.as_deref().map(clean),
            awaiting_approval: held.collect(),
            rejected: rejected.collect(),
            log: log.into_iter().skip(skipped).map(|line| clean(&line)).collect(),
        }
    }
}

/// The command or address of a server, and the program that is started for an address.
fn endpoint(config: &McpServerConfig) -> String {
    let started = config.program.iter().map(|program| format!(" · {}", endpoint_of(program)));
    [endpoint_of(&config.transport)].into_iter().chain(started).collect()
}

/// A command or address without anything that might be a secret.
fn endpoint_of(transport: &TransportConfig) -> String {
    let settings = match transport {
        TransportConfig::Stdio { command, args, .. } => {
            ServerSettings { command: Some(command.clone()), args: args.clone(), ..ServerSettings::default() }
        }
        TransportConfig::Http { url, .. } => {
            ServerSettings { url: Some(url.clone()), ..ServerSettings::default() }
        }
    };
    let line = settings.summary();
    // Drops the transport, which other fields show.
    line.split_once(' ').map(|(_, rest)| rest.trim_start().to_owned()).unwrap_or(line)
}
