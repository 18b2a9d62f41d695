//! The routes of agents: runs, approvals, and the OpenAI-compatible API.

use http::HeaderMap;
use toolyard_mcp_server::RouteRequest;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    openai,
    runs::{
        self,
        access::OwnedRun,
        approvals::{ApprovalList, DecidedApproval, DecisionBody},
        bodies::{
            CancelledRun, ResolutionBody, ResolvedStep, RunDetails, RunEventLog, StartRunBody, StartedRun,
            UnknownSteps,
        },
        list::{ApprovalQuery, EventLogQuery, EventQuery, RunList, RunQuery, UnknownStepQuery},
        stream_ticket::CreatedStreamTicket,
    },
};
use crate::api::{
    ApiState,
    extract::{Agents, ApiPath, ApiQuery, AuthenticatedCaller, JsonBody, Requester},
    openapi::ErrorBody,
    response::ApiResult,
};

/// Runs, below `/api/v1` and as an alias at the root.
pub(crate) fn run_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_runs, start_run))
        .routes(routes!(show_run))
        .routes(routes!(run_events))
        .routes(routes!(create_stream_ticket))
        .routes(routes!(run_log))
        .routes(routes!(resume_run))
        .routes(routes!(cancel_run))
}

/// The schema of run events.
pub(crate) fn schema_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(event_schema))
}

/// Approvals of all runs.
pub(crate) fn approval_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list_approvals)).routes(routes!(decide))
}

/// Steps of all runs whose outcome is unknown.
pub(crate) fn unknown_step_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list_unknown_steps, resolve_step))
}

/// The API of OpenAI, in which models are agents.
pub(crate) fn openai_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(complete_chat))
        .routes(routes!(create_response))
        .routes(routes!(list_models))
        .routes(routes!(show_model))
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/runs", tag = "runs", params(RunQuery),
    responses((status = 200, body = RunList), (status = 400, body = ErrorBody)))]
async fn list_runs(
    Agents(api): Agents,
    caller: AuthenticatedCaller,
    ApiQuery(query): ApiQuery<RunQuery>,
) -> ApiResult {
    Ok(runs::list::list(&api.runs, &caller.0, &query).await?.into())
}

/// Starts a run. Repeating the request with the same idempotency key returns the same run.
#[utoipa::path(post, path = "/runs", tag = "runs", request_body = StartRunBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "identifies the request for a day")),
    responses((status = 202, body = StartedRun), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "a request with this `Idempotency-Key` was received and its run is being started"),
        (status = 422, body = ErrorBody, description = "the `Idempotency-Key` was used for another request, the agent has no usable model, \
            or the start of the run was interrupted"),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody)))]
async fn start_run(Agents(api): Agents, requester: Requester, request: RouteRequest) -> ApiResult {
    Ok(runs::handlers::start(&api.runs, &api.requests, &request, &requester).await?.into())
}

/// Shows a run.
#[utoipa::path(get, path = "/runs/{run}", tag = "runs", params(("run" = String, Path)),
    responses((status = 200, body = RunDetails), (status = 404, body = ErrorBody)))]
async fn show_run(Agents(api): Agents, OwnedRun(run): OwnedRun) -> ApiResult {
    Ok(runs::handlers::show(&api.runs, &run).await?.into())
}

/// Follows the events of a run as server-sent events.
#[utoipa::path(get, path = "/runs/{run}/events", tag = "runs",
    params(("run" = String, Path), EventQuery, ("Last-Event-ID" = Option<i64>, Header, description = "continues after this event")),
    responses((status = 200, content_type = "text/event-stream", body = String,
            description = "the events as server-sent events; `data` is JSON by `/api/v1/events.schema.json`"),
        (status = 204, description = "the run is over and nothing follows"), (status = 404, body = ErrorBody)))]
async fn run_events(
    Agents(api): Agents,
    OwnedRun(run): OwnedRun,
    ApiQuery(query): ApiQuery<EventQuery>,
    headers: HeaderMap,
) -> ApiResult {
    Ok(runs::handlers::follow(&api.runs, &run, &headers, query.after).await?.into())
}

/// Creates a ticket for the events of a run. The `EventSource` of a browser, which cannot send a token, sends it in the query.
#[utoipa::path(post, path = "/runs/{run}/stream-ticket", tag = "runs", params(("run" = String, Path)),
    responses((status = 200, body = CreatedStreamTicket), (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody, description = "too many unexpired stream tickets")))]
async fn create_stream_ticket(
    Agents(api): Agents,
    caller: AuthenticatedCaller,
    OwnedRun(run): OwnedRun,
) -> ApiResult {
    Ok(runs::stream_ticket::create(&api.runs, &api.stream_tickets, &run, &caller.0).await?.into())
}

/// Lists the events of a run that are logged so far, and never waits.
#[utoipa::path(get, path = "/runs/{run}/log", tag = "runs", params(("run" = String, Path), EventLogQuery),
    responses((status = 200, body = RunEventLog), (status = 404, body = ErrorBody)))]
async fn run_log(
    Agents(api): Agents,
    OwnedRun(run): OwnedRun,
    ApiQuery(query): ApiQuery<EventLogQuery>,
) -> ApiResult {
    Ok(runs::handlers::event_log(&api.runs, &run, &query).await?.into())
}

/// The JSON Schema of a run event.
#[utoipa::path(get, path = "/events.schema.json", tag = "runs", responses((status = 200, body = Object)))]
async fn event_schema() -> ApiResult {
    Ok(runs::handlers::event_schema().into())
}

/// Answers a request of OpenAI's Responses API. The model is the name of an agent.
#[utoipa::path(post, path = "/v1/responses", tag = "openai", request_body = Object,
    params(("Idempotency-Key" = Option<String>, Header, description = "identifies the request for a day")),
    responses((status = 200, description = "a response, or its events as server-sent events",
            content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "a request with this `Idempotency-Key` was received and its run is being started"),
        (status = 422, body = ErrorBody, description = "the run has no answer, the run of a repeated request has not ended, or the \
            `Idempotency-Key` was used for another request"),
        (status = 429, body = ErrorBody), (status = 502, body = ErrorBody), (status = 503, body = ErrorBody)))]
async fn create_response(Agents(api): Agents, requester: Requester, request: RouteRequest) -> ApiResult {
    Ok(openai::handlers::respond(&api.runs, &api.requests, &request, &requester).await?.into())
}

/// Lists all steps whose outcome is unknown.
#[utoipa::path(get, path = "/unknown-steps", tag = "runs", params(UnknownStepQuery),
    responses((status = 200, body = UnknownSteps)))]
async fn list_unknown_steps(
    Agents(api): Agents,
    caller: AuthenticatedCaller,
    ApiQuery(query): ApiQuery<UnknownStepQuery>,
) -> ApiResult {
    Ok(runs::handlers::unknown(&api.runs, &caller.0, &query).await?.into())
}

/// Records whether a step with an unknown outcome took effect, and continues its run.
#[utoipa::path(post, path = "/unknown-steps", tag = "runs", request_body = ResolutionBody,
    responses((status = 202, body = ResolvedStep), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn resolve_step(
    Agents(api): Agents,
    requester: Requester,
    JsonBody(body): JsonBody<ResolutionBody>,
) -> ApiResult {
    Ok(runs::handlers::resolve(&api.runs, body, &requester).await?.into())
}

/// Resumes a run that no process drives, such as one whose gateway was killed.
#[utoipa::path(post, path = "/runs/{run}/resume", tag = "runs", params(("run" = String, Path)),
    responses((status = 202, body = StartedRun), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "the run is over, waits, is driven by another process, or is the operator's")))]
async fn resume_run(Agents(api): Agents, requester: Requester, OwnedRun(run): OwnedRun) -> ApiResult {
    Ok(runs::resume::resume(&api.runs, &run, &requester).await?.into())
}

/// Cancels a run. 202 if it is still ending.
#[utoipa::path(post, path = "/runs/{run}/cancel", tag = "runs", params(("run" = String, Path)),
    responses((status = 200, body = CancelledRun), (status = 202, body = CancelledRun), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "the run is over")))]
async fn cancel_run(Agents(api): Agents, requester: Requester, OwnedRun(run): OwnedRun) -> ApiResult {
    Ok(runs::handlers::cancel(&api.runs, &run, &requester).await?.into())
}

/// Lists all pending approvals, oldest first.
#[utoipa::path(get, path = "/approvals", tag = "approvals", params(ApprovalQuery),
    responses((status = 200, body = ApprovalList)))]
async fn list_approvals(
    Agents(api): Agents,
    caller: AuthenticatedCaller,
    ApiQuery(query): ApiQuery<ApprovalQuery>,
) -> ApiResult {
    Ok(runs::approvals::list(&api.runs, &caller.0, &query).await?.into())
}

/// Decides on a pending approval.
#[utoipa::path(post, path = "/approvals/{approval}", tag = "approvals", params(("approval" = i64, Path)),
    request_body = DecisionBody,
    responses((status = 202, body = DecidedApproval), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "the run is over")))]
async fn decide(
    Agents(api): Agents,
    requester: Requester,
    ApiPath(approval): ApiPath<i64>,
    JsonBody(body): JsonBody<DecisionBody>,
) -> ApiResult {
    runs::approvals::check_access(&api.runs, &requester.identity, approval).await?;
    Ok(runs::approvals::decide(&api.runs, approval, body, &requester).await?.into())
}

/// Completes a chat, as OpenAI's API does. The model is the name of an agent.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai", request_body = Object,
    params(("Idempotency-Key" = Option<String>, Header, description = "identifies the request for a day")),
    responses((status = 200, description = "a completion, or its chunks as server-sent events",
            content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "a request with this `Idempotency-Key` was received and its run is being started"),
        (status = 422, body = ErrorBody, description = "the run has no answer, the run of a repeated request has not ended, or the \
            `Idempotency-Key` was used for another request"),
        (status = 429, body = ErrorBody), (status = 502, body = ErrorBody), (status = 503, body = ErrorBody)))]
async fn complete_chat(Agents(api): Agents, requester: Requester, request: RouteRequest) -> ApiResult {
    Ok(openai::handlers::complete(&api.runs, &api.requests, &request, &requester).await?.into())
}

/// Lists the agents as models.
#[utoipa::path(get, path = "/v1/models", tag = "openai", responses((status = 200, body = Object)))]
async fn list_models(Agents(api): Agents, caller: AuthenticatedCaller) -> ApiResult {
    Ok(openai::handlers::models(&api.runs, &caller.0).into())
}

/// Shows an agent as a model.
#[utoipa::path(get, path = "/v1/models/{name}", tag = "openai", params(("name" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody)))]
async fn show_model(
    Agents(api): Agents,
    caller: AuthenticatedCaller,
    ApiPath(name): ApiPath<String>,
) -> ApiResult {
    Ok(openai::handlers::model(&api.runs, &name, &caller.0)?.into())
}
