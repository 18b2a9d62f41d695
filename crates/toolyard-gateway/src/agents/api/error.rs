//! [`ApiError`]: errors of the HTTP API, in the form that OpenAI clients understand.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use toolyard_agent::AgentError;
use toolyard_core::{JournalError, RawJson, redact, sanitize, text::sanitize_json};
use toolyard_mcp_server::RouteResponse;

use crate::agents::{active_runs::StartError, config::AgentLookupError, idempotency::IdempotencyError};

/// Tells OpenAI clients whether to repeat the request. Only a request that started nothing may be repeated.
static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    /// OpenAI's error type, such as `invalid_request_error` or `server_error`.
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
    pub(super) code: Option<&'static str>,
}

impl ApiError {
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            message: message.into(),
            param: None,
            code: None,
        }
    }

    pub(super) fn invalid_param(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param), ..Self::bad_request(message) }
    }

    pub(super) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, code: Some(code), ..Self::bad_request(message) }
    }

    /// A failure of Toolyard, with a status that does not make clients repeat the request.
    pub(super) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            kind: "server_error",
            code: Some(code),
            ..Self::bad_request(message)
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let Self { kind, message, param, code, .. } = self;
        let message = redact(message);
        json!({"error": {"message": sanitize(&message).0, "type": kind, "param": param, "code": code}})
    }
}

impl From<ApiError> for RouteResponse {
    fn from(error: ApiError) -> Self {
        let mut response = json_response(error.status, &error.to_json());
        let should_retry = if error.status == StatusCode::SERVICE_UNAVAILABLE { "true" } else { "false" };
        response.headers.push((SHOULD_RETRY.clone(), HeaderValue::from_static(should_retry)));
        response
    }
}

impl From<AgentLookupError> for ApiError {
    fn from(error: AgentLookupError) -> Self {
        match error {
            AgentLookupError::Unknown { .. } => {
                Self { param: Some("model"), ..Self::not_found("model_not_found", error.to_string()) }
            }
            AgentLookupError::Model(_) => Self::failed("agent_unavailable", error.to_string()),
        }
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Journal(JournalError::UnknownRun(_)) | AgentError::OtherKind { .. } => {
                Self::not_found("run_not_found", error.to_string())
            }
            AgentError::Finished(_) | AgentError::Journal(JournalError::Leased { .. }) => {
                Self::bad_request(error.to_string())
            }
            other => Self::failed("run_interrupted", other.to_string()),
        }
    }
}

impl From<JournalError> for ApiError {
    fn from(error: JournalError) -> Self {
        AgentError::from(error).into()
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Agent(error) => error.into(),
            StartError::ShuttingDown => Self {
                status: StatusCode::SERVICE_UNAVAILABLE,
                ..Self::failed("shutting_down", error.to_string())
            },
            StartError::OutcomeUnknown => Self::failed("run_interrupted", error.to_string()),
        }
    }
}

impl From<IdempotencyError> for ApiError {
    fn from(error: IdempotencyError) -> Self {
        let code = match error {
            IdempotencyError::Log(error) => return error.into(),
            IdempotencyError::KeyTooLong => return Self::bad_request(error.to_string()),
            IdempotencyError::KeyReused => "idempotency_key_reused",
            IdempotencyError::InProgress | IdempotencyError::AlreadyStarted(_) => "already_started",
        };
        Self::failed(code, error.to_string())
    }
}

/// A response without unsafe characters: questions, plans and answers come from clients, tools and models.
pub(super) fn json_response(status: StatusCode, value: &Value) -> RouteResponse {
    RouteResponse::json(status, Bytes::from(sanitized_json(value)))
}

/// The JSON text of a value, without unsafe characters.
pub(super) fn sanitized_json(value: &Value) -> String {
    sanitize_json(&RawJson::from_value(value)).0.get().to_owned()
}
