//! Agents over HTTP: the OpenAI-compatible API at `/v1`, where models are agents, and runs at `/runs`.

mod completion;
mod completion_handlers;
mod completion_stream;
mod error;
mod parameters;
mod run_event_stream;
mod run_handlers;
mod run_state;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use toolyard_core::{BoxFuture, ConversationId, RunId};
use toolyard_mcp_server::{HttpRoutes, RouteRequest, RouteResponse};

use self::error::ApiError;
use super::{
    active_runs::ActiveRuns, conversation_owner::http_conversation, idempotency::RequestCache,
    service::AgentService,
};

/// The conversation that a request names.
fn requested_conversation(
    request: &RouteRequest,
    name: Option<&str>,
) -> Result<Option<Box<ConversationId>>, ApiError> {
    let id = name.map(|name| http_conversation(&request.credential_hash, name)).transpose();
    id.map(|id| id.map(Box::new)).map_err(|error| ApiError::invalid_param("conversation", error.to_string()))
}

/// Serves agents and their runs over HTTP.
#[derive(Debug)]
pub struct AgentApi {
    runs: Arc<ActiveRuns>,
    requests: RequestCache,
}

impl AgentApi {
    /// Serves the agents of a service.
    pub fn new(service: AgentService) -> Self {
        Self { runs: service.0, requests: RequestCache::default() }
    }

    async fn route(&self, request: RouteRequest) -> Result<RouteResponse, ApiError> {
        let (runs, headers, body) = (&self.runs, &request.headers, request.body.as_str());
        let segments: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        match (&request.method, segments.as_slice()) {
            (&Method::POST, ["v1", "chat", "completions"]) => {
                completion_handlers::complete(runs, &self.requests, &request).await
            }
            (&Method::GET, ["v1", "models"]) => Ok(completion_handlers::models(runs)),
            (&Method::GET, ["v1", "models", name]) => completion_handlers::model(runs, name),
            (&Method::POST, ["runs"]) => run_handlers::start(runs, &self.requests, &request).await,
            (&Method::GET, ["runs", "unknown"]) => run_handlers::unknown(runs).await,
            (&Method::GET, ["runs", run]) => run_handlers::show(runs, &RunId::from(*run)).await,
            (&Method::GET, ["runs", run, "events"]) => {
                run_handlers::follow(runs, &RunId::from(*run), headers).await
            }
            (&Method::POST, ["runs", run, "approve"]) => {
                run_handlers::decide(runs, &RunId::from(*run), body).await
            }
            (&Method::POST, ["runs", run, "resolve"]) => {
                run_handlers::resolve(runs, &RunId::from(*run), body).await
            }
            (&Method::POST, ["runs", run, "cancel"]) => run_handlers::cancel(runs, &RunId::from(*run)).await,
            (method, segments) => Err(no_route(method, segments, runs.config.clients_may_approve)),
        }
    }
}

impl HttpRoutes for AgentApi {
    fn matches(&self, path: &str) -> bool {
        ["/v1", "/runs"].iter().any(|prefix| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn handle(&self, request: RouteRequest) -> BoxFuture<'_, RouteResponse> {
        Box::pin(async move { self.route(request).await.unwrap_or_else(RouteResponse::from) })
    }

    fn error_body(&self, status: StatusCode, message: &str) -> Bytes {
        Bytes::from(ApiError::refused(status, message).to_json().to_string())
    }
}

fn no_route(method: &Method, segments: &[&str], clients_may_approve: bool) -> ApiError {
    let is_known_path = matches!(
        segments,
        ["v1", "chat", "completions"]
            | ["v1", "models"]
            | ["runs"]
            | ["runs", _]
            | ["runs", _, "events" | "approve" | "resolve" | "cancel"]
    );
    if is_known_path {
        let error = ApiError::bad_request(format!("{method} is not supported for this path"));
        return ApiError { status: StatusCode::METHOD_NOT_ALLOWED, ..error };
    }
    let deny_only = if clients_may_approve { "" } else { " (deny only)" };
    let message = format!(
        "unknown path; there are POST /v1/chat/completions, GET /v1/models, POST /runs, GET /runs/ID, \
         GET /runs/ID/events, GET /runs/unknown, POST /runs/ID/resolve, POST /runs/ID/approve{deny_only} and \
         POST /runs/ID/cancel"
    );
    ApiError::not_found("route_not_found", message)
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
