//! The routes of agents: runs, and the OpenAI-compatible API.

use http::HeaderMap;
use toolyard_core::RunId;
use toolyard_mcp_server::RouteRequest;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{completion_handlers, run_handlers};
use crate::api::{
    ApiState,
    extract::{Agents, ApiPath, TextBody},
    response::ApiResult,
};

/// Runs, below `/api/v1` and as an alias at the root.
pub(crate) fn run_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(start_run))
        .routes(routes!(unknown_steps))
        .routes(routes!(show_run))
        .routes(routes!(run_events))
        .routes(routes!(decide_of_run))
        .routes(routes!(resolve_step))
        .routes(routes!(cancel_run))
}

/// The API of OpenAI, in which models are agents.
pub(crate) fn openai_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(complete_chat))
        .routes(routes!(list_models))
        .routes(routes!(show_model))
}

/// Starts a run.
#[utoipa::path(post, path = "/runs", tag = "runs")]
async fn start_run(Agents(api): Agents, request: RouteRequest) -> ApiResult {
    Ok(run_handlers::start(&api.runs, &api.requests, &request).await?.into())
}

/// Lists all steps whose outcome is unknown.
#[utoipa::path(get, path = "/runs/unknown", tag = "runs")]
async fn unknown_steps(Agents(api): Agents) -> ApiResult {
    Ok(run_handlers::unknown(&api.runs).await?.into())
}

/// Shows a run.
#[utoipa::path(get, path = "/runs/{run}", tag = "runs")]
async fn show_run(Agents(api): Agents, ApiPath(run): ApiPath<String>) -> ApiResult {
    Ok(run_handlers::show(&api.runs, &RunId::from(run)).await?.into())
}

/// Follows the events of a run.
#[utoipa::path(get, path = "/runs/{run}/events", tag = "runs")]
async fn run_events(Agents(api): Agents, ApiPath(run): ApiPath<String>, headers: HeaderMap) -> ApiResult {
    Ok(run_handlers::follow(&api.runs, &RunId::from(run), &headers).await?.into())
}

/// Decides on a pending approval of a run.
#[utoipa::path(post, path = "/runs/{run}/approve", tag = "approvals")]
async fn decide_of_run(
    Agents(api): Agents,
    ApiPath(run): ApiPath<String>,
    TextBody(body): TextBody,
) -> ApiResult {
    Ok(run_handlers::decide(&api.runs, &RunId::from(run), &body).await?.into())
}

/// Records whether a step with an unknown outcome took effect.
#[utoipa::path(post, path = "/runs/{run}/resolve", tag = "runs")]
async fn resolve_step(
    Agents(api): Agents,
    ApiPath(run): ApiPath<String>,
    TextBody(body): TextBody,
) -> ApiResult {
    Ok(run_handlers::resolve(&api.runs, &RunId::from(run), &body).await?.into())
}

/// Cancels a run.
#[utoipa::path(post, path = "/runs/{run}/cancel", tag = "runs")]
async fn cancel_run(Agents(api): Agents, ApiPath(run): ApiPath<String>) -> ApiResult {
    Ok(run_handlers::cancel(&api.runs, &RunId::from(run)).await?.into())
}

/// Completes a chat. The model is the name of an agent.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai")]
async fn complete_chat(Agents(api): Agents, request: RouteRequest) -> ApiResult {
    Ok(completion_handlers::complete(&api.runs, &api.requests, &request).await?.into())
}

/// Lists the agents as models.
#[utoipa::path(get, path = "/v1/models", tag = "openai")]
async fn list_models(Agents(api): Agents) -> ApiResult {
    Ok(completion_handlers::models(&api.runs).into())
}

/// Shows an agent as a model.
#[utoipa::path(get, path = "/v1/models/{name}", tag = "openai")]
async fn show_model(Agents(api): Agents, ApiPath(name): ApiPath<String>) -> ApiResult {
    Ok(completion_handlers::model(&api.runs, &name)?.into())
}
