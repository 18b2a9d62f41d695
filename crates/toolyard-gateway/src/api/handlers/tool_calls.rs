//! `POST /api/v1/tools/{name}/call`: calls a tool as a client of the main endpoint does.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use toolyard_core::{
    ErrorKind, RawJson, ServiceCall, ToolCallRequest, ToolError, ToolOutput, telemetry::SpanContext,
};
use toolyard_mcp_server::{RouteRequest, RouteResponse};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::keyed_calls::{CallLookup, CallReservation, may_be_repeated};
use crate::{
    agents::{ApiError, DEFAULT_RETRY_AFTER, json_of},
    api::{
        ApiState,
        error_code::ErrorCode,
        extract::{ApiPath, Requester, parse_body},
        http_caller::HttpCaller,
        openapi::ErrorBody,
        response::ApiResult,
        trace::span_of,
    },
    surface::HubService,
};

/// The arguments of a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ToolCallBody {
    /// As the tool's input schema describes them.
    #[serde(default = "RawJson::empty_object")]
    #[schema(value_type = Object)]
    arguments: RawJson,
    /// The source of the tool, if several have one of this name.
    #[serde(default)]
    source: Option<String>,
}

/// The result of a call.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolCallResult {
    /// The result as text. Images and other files are summarized in brackets.
    pub output: String,
    /// The same as JSON, if the tool provides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether texts and lists in `structured` were shortened. The whole is at `GET /api/v1/results/RESULT_ID`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub structured_truncated: bool,
    /// Whether the tool reported a failure.
    pub is_error: bool,
    /// The source that answered.
    pub source: Option<String>,
    /// The number of calls that were made, over all sources.
    pub attempts: u32,
    /// How long the call took.
    pub duration_ms: u64,
    /// The whole result, if `output` is truncated: `GET /api/v1/results/RESULT_ID`, or the tool `read_result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_id: Option<String>,
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(call_tool))
}

/// Calls a tool of the main endpoint. A failure that the tool reports is a result with `is_error`. Disconnecting cancels the call.
#[utoipa::path(post, path = "/tools/{name}/call", tag = "tools",
    params(("name" = String, Path),
        ("Idempotency-Key" = Option<String>, Header,
            description = "identifies the call. This process answers a repeated request with the stored answer, for a day or until \
                the caller has used 1,000 newer keys. A failed call that is safe to repeat is made again.")),
    request_body = ToolCallBody,
    responses((status = 200, body = ToolCallResult),
        (status = 400, body = ErrorBody, description = "the arguments do not fit the schema of the tool; nothing was called"),
        (status = 403, body = ErrorBody, description = "the call is denied, or the tool awaits approval; nothing was called"),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "several sources have a tool of this name, and nothing was called; or a call with \
            this `Idempotency-Key` is running, or was executed, but its answer is not stored"),
        (status = 422, body = ErrorBody, description = "the tool asks its user for input, or the `Idempotency-Key` was used for another call"),
        (status = 429, body = ErrorBody, description = "a quota is used up, or too many `Idempotency-Key`s are in use; nothing was called"),
        (status = 500, body = ErrorBody),
        (status = 502, body = ErrorBody, description = "the response was lost, or the outcome is unknown"),
        (status = 503, body = ErrorBody, description = "the source cannot be reached or its circuit is open, no audit record can be \
            kept, or the gateway shuts down; nothing was called"),
        (status = 504, body = ErrorBody, description = "the tool did not answer in time; the call is safe to repeat")))]
async fn call_tool(
    State(state): State<ApiState>,
    requester: Requester,
    ApiPath(name): ApiPath<String>,
    request: RouteRequest,
) -> ApiResult {
    let not_offered = || {
        ApiError::not_found(
            ErrorCode::ToolCallsNotOffered,
            "this gateway offers no tool calls over its HTTP API",
        )
    };
    let service = state.main_tools.as_ref().ok_or_else(not_offered)?.service();
    let body: ToolCallBody = parse_body(&request.body)?;
    if !body.arguments.get().starts_with('{') {
        return Err(ApiError::invalid_param("arguments", "`arguments` must be an object"));
    }
    let reservation = match state.keyed_calls.reserve(&name, &request)? {
        CallLookup::New(reservation) => reservation,
        CallLookup::Repeated(answer) => return Ok(answer.into()),
    };
    let mut call_request = ToolCallRequest::new(name, body.arguments);
    call_request.source = body.source;
    let caller_name = requester.audit_name();
    let span = span_of(&request.headers);
    let caller = Arc::new(HttpCaller::new(requester.identity, span));
    let call = ServiceCall { request: call_request, caller: Some(caller), caller_name };
    let started = Instant::now();
    let pending_effect = reservation.as_ref().map(CallReservation::pending_effect);
    let outcome = service.call_from_http(&call, pending_effect).await;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let answer = match call_result(&outcome, duration_ms, &call, &service, span) {
        Ok(result) => json_of(StatusCode::OK, &result),
        Err(error) => RouteResponse::from(error),
    };
    if let Some(reservation) = reservation {
        match &outcome {
            Err(error) if may_be_repeated(error) => reservation.release(),
            _ => reservation.complete(&answer),
        }
    }
    Ok(answer.into())
}

/// The result of a call, or why there is none.
fn call_result(
    outcome: &Result<ToolOutput, ToolError>,
    duration_ms: u64,
    call: &ServiceCall,
    service: &HubService,
    span: Option<SpanContext>,
) -> Result<ToolCallResult, ApiError> {
    match outcome {
        Ok(output) if output.input_required => Err(input_required(&call.request.tool_name)),
        Ok(output) => Ok(ToolCallResult::new(output, duration_ms)),
        Err(error) if error.kind() == ErrorKind::Failed => Ok(ToolCallResult::failed(error, duration_ms)),
        Err(error) => {
            if error.kind() == ErrorKind::Quarantined {
                // Clients cannot approve it, so the operator has to learn that somebody wants it.
                let trace_id = span.map(|span| format!("{:032x}", span.trace_id));
                tracing::warn!(%error, hint = error.hint(), trace_id, "call refused");
            }
            Err(call_error(error, &call.request, service))
        }
    }
}

impl ToolCallResult {
    fn new(output: &ToolOutput, duration_ms: u64) -> Self {
        let meta = &output.meta;
        let reference = meta.truncation.as_ref().and_then(|truncation| truncation.reference.as_ref());
        Self {
            output: output.to_text(),
            structured: output.structured.as_ref().map(RawJson::to_value),
            structured_truncated: meta.structured_truncated,
            is_error: false,
            source: meta.source.as_ref().map(ToString::to_string),
            attempts: meta.attempts,
            duration_ms,
            result_id: reference.map(ToString::to_string),
        }
    }

    fn failed(error: &ToolError, duration_ms: u64) -> Self {
        let hint = error.caller_hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        Self {
            output: format!("{}{hint}", error.message()),
            structured: None,
            structured_truncated: false,
            is_error: true,
            source: error.source_id().map(ToString::to_string),
            attempts: error.attempts(),
            duration_ms,
            result_id: None,
        }
    }
}

/// The error for a tool that cannot answer without its user.
fn input_required(tool: &str) -> ApiError {
    let message = format!("tool `{tool}` asks its user for input, and a call over HTTP has no user");
    let hint = "call it with an MCP client that supports elicitation, or let an agent call it";
    ApiError { hint: Some(hint.to_owned()), ..ApiError::failed(ErrorCode::InputRequired, message) }
}

/// Why there is no result, with the hint for clients.
fn call_error(error: &ToolError, request: &ToolCallRequest, service: &HubService) -> ApiError {
    use ErrorKind as K;
    // A denied tool has a source; an ambiguous name does not.
    let is_ambiguous = error.source_id().is_none() && service.is_ambiguous(&request.tool_name);
    let message = error.to_string();
    let client =
        |status, code| ApiError { status, code: Some(code), ..ApiError::bad_request(message.clone()) };
    let upstream = |status, code| ApiError { status, ..ApiError::failed(code, message.clone()) };
    let answer = match error.kind() {
        K::UnknownTool | K::UnknownCapability => client(StatusCode::NOT_FOUND, ErrorCode::ToolNotFound),
        K::UnknownSource => client(StatusCode::NOT_FOUND, ErrorCode::SourceNotFound),
        K::InvalidArguments => ApiError {
            param: Some("arguments".into()),
            ..client(StatusCode::BAD_REQUEST, ErrorCode::InvalidArguments)
        },
        K::Refused if is_ambiguous => ApiError {
            param: Some("source".into()),
            ..client(StatusCode::CONFLICT, ErrorCode::ToolAmbiguous)
        },
        K::Refused => client(StatusCode::FORBIDDEN, ErrorCode::CallDenied),
        K::Quarantined => client(StatusCode::FORBIDDEN, ErrorCode::ToolNotApproved),
        K::AuditUnavailable => ApiError::store_unavailable(&message),
        // Nothing was sent.
        K::Unavailable => ApiError::unavailable(ErrorCode::SourceUnavailable, message.clone()),
        K::QuotaExceeded => ApiError::quota_exceeded(message.clone(), DEFAULT_RETRY_AFTER),
        K::SignInRequired => client(StatusCode::FORBIDDEN, ErrorCode::SignInRequired),
        K::SessionLost => client(StatusCode::CONFLICT, ErrorCode::SessionLost),
        K::CircuitOpen => ApiError::unavailable(ErrorCode::CircuitOpen, message.clone()),
        // If the call might have had an effect, its outcome would be unknown.
        K::Timeout => ApiError {
            retry_after: Some(DEFAULT_RETRY_AFTER),
            ..upstream(StatusCode::GATEWAY_TIMEOUT, ErrorCode::ToolTimeout)
        },
        K::ResponseLost => upstream(StatusCode::BAD_GATEWAY, ErrorCode::ResponseLost),
        K::OutcomeUnknown => upstream(StatusCode::BAD_GATEWAY, ErrorCode::OutcomeUnknown),
        K::Failed => upstream(StatusCode::BAD_GATEWAY, ErrorCode::ToolFailed),
        K::Internal => ApiError::internal(message.clone()),
        // Kinds that are added later.
        _ => upstream(StatusCode::BAD_GATEWAY, ErrorCode::ToolFailed),
    };
    let hint = error.caller_hint().map(str::to_owned);
    let retry_after = error.retry_after().filter(|_| answer.is_retryable()).or(answer.retry_after);
    ApiError { hint, retry_after, ..answer }
}

#[cfg(test)]
#[path = "tool_calls_tests.rs"]
mod tests;
