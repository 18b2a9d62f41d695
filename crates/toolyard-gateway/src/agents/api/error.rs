//! [`ApiError`]: errors of the HTTP API, in the form that OpenAI clients understand.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header::RETRY_AFTER};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use toolyard_agent::AgentError;
use toolyard_core::{JournalError, RawJson, redact, sanitize, text::sanitize_json};
use toolyard_mcp_server::RouteResponse;

use crate::{
    admin::AdminError,
    agents::{active_runs::StartError, config::AgentLookupError, idempotency::IdempotencyError},
    api::error_code::ErrorCode,
};

/// Tells OpenAI clients whether to repeat the request. Only a request that changed nothing may be repeated.
static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// After this time a retryable request may be repeated, unless the error says another one.
pub(crate) const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    /// OpenAI's error type, such as `invalid_request_error` or `server_error`.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) param: Option<Box<str>>,
    pub(crate) code: Option<ErrorCode>,
    /// What the client can do about it.
    pub(crate) hint: Option<String>,
    /// When the same request may be repeated, if that is safe although the status does not say so, or after another time.
    pub(crate) retry_after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            message: message.into(),
            param: None,
            code: Some(ErrorCode::InvalidRequest),
            hint: None,
            retry_after: None,
        }
    }

    pub(crate) fn invalid_param(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::bad_request(message) }
    }

    pub(crate) fn not_found(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, code: Some(code), ..Self::bad_request(message) }
    }

    /// A request that was refused before it got to a handler, with OpenAI's code.
    pub(crate) fn refused(status: StatusCode, message: &str) -> Self {
        let code = match status {
            StatusCode::UNAUTHORIZED => ErrorCode::InvalidApiKey,
            StatusCode::FORBIDDEN => ErrorCode::Forbidden,
            StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::RequestTooLarge,
            _ => ErrorCode::InvalidRequest,
        };
        Self { status, code: Some(code), ..Self::bad_request(message) }
    }

    /// A failure of Toolyard, with a status that does not make clients repeat the request.
    pub(crate) fn failed(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            kind: "server_error",
            code: Some(code),
            ..Self::bad_request(message)
        }
    }

    /// A conflict with the state of what the request is about.
    pub(crate) fn conflict(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status: StatusCode::CONFLICT, code: Some(code), ..Self::bad_request(message) }
    }

    /// A defect of Toolyard.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, ..Self::failed(ErrorCode::InternalError, message) }
    }

    /// A failure after which the client may repeat the request, because nothing was started or changed.
    pub(crate) fn unavailable(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, ..Self::failed(code, message) }
    }

    /// A quota is used up; the request may be repeated after this time.
    pub(crate) fn quota_exceeded(message: impl Into<String>, retry_after: Duration) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            kind: "rate_limit_error",
            code: Some(ErrorCode::QuotaExceeded),
            retry_after: Some(retry_after),
            ..Self::bad_request(message)
        }
    }

    /// The model of an agent cannot be reached or is overloaded. The request may be repeated if nothing was changed.
    pub(super) fn model_unavailable(message: impl Into<String>, may_repeat: bool) -> Self {
        let status = if may_repeat { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::BAD_GATEWAY };
        Self { status, ..Self::failed(ErrorCode::ModelUnavailable, message) }
    }

    /// The store does not answer.
    pub(crate) fn store_unavailable(detail: impl std::fmt::Display) -> Self {
        Self::unavailable(ErrorCode::StoreUnavailable, format!("{detail}; retry"))
    }

    /// Whether the same request may succeed later. Of conflicts, only that with a request in progress goes away.
    pub(crate) fn is_retryable(&self) -> bool {
        self.retry_after.is_some()
            || self.status == StatusCode::SERVICE_UNAVAILABLE
            || (self.status == StatusCode::CONFLICT && self.code == Some(ErrorCode::AlreadyStarted))
    }

    pub(crate) fn to_json(&self) -> Value {
        let Self { kind, message, param, code, hint, .. } = self;
        let clean = |text: &str| sanitize(&redact(text)).0.into_owned();
        let param = param.as_deref().map(clean);
        let mut error = json!({"message": clean(message), "type": kind, "param": param, "code": code});
        if let (Some(fields), Some(hint)) = (error.as_object_mut(), hint) {
            fields.insert("hint".to_owned(), clean(hint).into());
        }
        json!({ "error": error })
    }
}

impl From<ApiError> for RouteResponse {
    fn from(error: ApiError) -> Self {
        let mut response = json_response(error.status, &error.to_json());
        let should_retry = if error.is_retryable() { "true" } else { "false" };
        response.headers.push((SHOULD_RETRY.clone(), HeaderValue::from_static(should_retry)));
        if error.is_retryable() {
            let delay = error.retry_after.unwrap_or(DEFAULT_RETRY_AFTER);
            // Whole seconds, and never too early.
            let seconds = delay.as_secs().saturating_add(u64::from(delay.subsec_nanos() > 0));
            response.headers.push((RETRY_AFTER, HeaderValue::from(seconds)));
        }
        response
    }
}

impl From<AgentLookupError> for ApiError {
    fn from(error: AgentLookupError) -> Self {
        match error {
            AgentLookupError::Unknown { .. } => Self {
                param: Some("model".into()),
                ..Self::not_found(ErrorCode::ModelNotFound, error.to_string())
            },
            AgentLookupError::NoDefaultModel => {
                let hint = "the operator sets `default_model`, or `model` of the agent, in toolyard.toml";
                Self {
                    hint: Some(hint.to_owned()),
                    ..Self::failed(ErrorCode::AgentUnavailable, error.to_string())
                }
            }
            AgentLookupError::Model(_) => {
                // The reason names settings, files and environment variables of the operator.
                tracing::warn!(%error, "the model of an agent is not available");
                Self::failed(ErrorCode::AgentUnavailable, "the model of this agent is not available")
            }
        }
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Journal(JournalError::UnknownRun(_)) | AgentError::OtherKind { .. } => {
                Self::not_found(ErrorCode::RunNotFound, error.to_string())
            }
            AgentError::Finished(_) => Self::conflict(ErrorCode::RunFinished, error.to_string()),
            AgentError::Journal(JournalError::Leased { .. }) => {
                Self::conflict(ErrorCode::RunActive, error.to_string())
            }
            AgentError::Journal(error @ JournalError::Storage(_)) => error.into(),
            other => Self::failed(ErrorCode::RunInterrupted, other.to_string()),
        }
    }
}

impl From<JournalError> for ApiError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Storage(_) => Self::store_unavailable(error),
            error => AgentError::from(error).into(),
        }
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        let message = error.to_string();
        let conflict = |code| Self::conflict(code, message.clone());
        match error {
            AdminError::NoStore => Self::not_found(ErrorCode::NoStore, message),
            AdminError::Storage(_) => Self::store_unavailable(message),
            AdminError::UnknownAgent(_) => Self::not_found(ErrorCode::AgentNotFound, message),
            AdminError::AgentExists(_) => conflict(ErrorCode::AgentExists),
            AdminError::ReadOnlyAgent(_) => conflict(ErrorCode::AgentReadOnly),
            AdminError::InvalidAgent(_) => Self::bad_request(message),
            AdminError::UnknownServer(_) => Self::not_found(ErrorCode::ServerNotFound, message),
            AdminError::ServerExists(_) => conflict(ErrorCode::ServerExists),
            AdminError::ServerConflicts(_) => conflict(ErrorCode::ServerConflicts),
            AdminError::Unreadable { hint, .. } => {
                Self { hint, ..Self::failed(ErrorCode::SettingsUnreadable, message) }
            }
            AdminError::NotChanged { hint, .. } => {
                Self { hint, ..Self::failed(ErrorCode::SettingsNotChanged, message) }
            }
        }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        if error.is_store_failure() {
            return Self::store_unavailable(error);
        }
        match error {
            StartError::QuotaExceeded(exceeded) => {
                Self::quota_exceeded(exceeded.to_string(), exceeded.retry_after)
            }
            StartError::Agent(error) => error.into(),
            StartError::ShuttingDown => Self::unavailable(ErrorCode::ShuttingDown, error.to_string()),
            StartError::OutcomeUnknown => Self::failed(ErrorCode::RunInterrupted, error.to_string()),
        }
    }
}

impl From<IdempotencyError> for ApiError {
    fn from(error: IdempotencyError) -> Self {
        let code = match error {
            IdempotencyError::Log(error) => return error.into(),
            IdempotencyError::KeyTooLong => return Self::bad_request(error.to_string()),
            IdempotencyError::KeyReused => {
                let error = Self::bad_request(error.to_string());
                let (status, code) =
                    (StatusCode::UNPROCESSABLE_ENTITY, Some(ErrorCode::IdempotencyKeyReused));
                return Self { status, code, ..error };
            }
            // The repeated request finds the run, or starts it if the first one did not.
            IdempotencyError::InProgress => {
                let error = Self::failed(ErrorCode::AlreadyStarted, error.to_string());
                return Self { status: StatusCode::CONFLICT, ..error };
            }
            IdempotencyError::AlreadyStarted(_) => ErrorCode::AlreadyStarted,
        };
        Self::failed(code, error.to_string())
    }
}

/// The output of a future that reads the store; an error if the store does not answer by the deadline.
pub(super) async fn before<T, E: Into<ApiError>>(
    deadline: Instant,
    reading: impl Future<Output = Result<T, E>>,
) -> Result<T, ApiError> {
    match timeout_at(deadline, reading).await {
        Ok(read) => read.map_err(Into::into),
        Err(_) => Err(ApiError::store_unavailable("the store did not answer in time")),
    }
}

/// A response without unsafe characters: questions, plans and answers come from clients, tools and models.
pub(crate) fn json_response(status: StatusCode, value: &Value) -> RouteResponse {
    RouteResponse::json(status, Bytes::from(sanitized_json(value)))
}

/// A response with the JSON of a typed body.
pub(crate) fn json_of(status: StatusCode, body: &impl Serialize) -> RouteResponse {
    match serde_json::to_value(body) {
        Ok(value) => json_response(status, &value),
        Err(error) => ApiError::internal(error.to_string()).into(),
    }
}

/// The JSON text of a value, without unsafe characters.
pub(super) fn sanitized_json(value: &Value) -> String {
    sanitize_json(&RawJson::from_value(value)).0.get().to_owned()
}

#[cfg(test)]
mod tests {
    use toolyard_core::{ErrorKind, QuotaExceeded, QuotaLimit};

    use super::*;

    fn header(error: ApiError, name: &str) -> Option<String> {
        let response = RouteResponse::from(error);
        let found = response.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn only_requests_that_may_be_repeated_say_when() {
        let after =
            |retry_after| ApiError { retry_after, ..ApiError::failed(ErrorCode::ToolTimeout, "late") };
        let delay = |milliseconds| Some(Duration::from_millis(milliseconds));
        for (error, expected) in [
            (ApiError::bad_request("x"), None),
            (ApiError::failed(ErrorCode::RunFailed, "x"), None),
            (ApiError::conflict(ErrorCode::RunFinished, "x"), None),
            (ApiError::store_unavailable("x"), Some("2")),
            (
                ApiError { retry_after: delay(8_100), ..ApiError::unavailable(ErrorCode::CircuitOpen, "x") },
                Some("9"),
            ),
            (after(None), None),
            (after(delay(7_000)), Some("7")),
            (after(delay(0)), Some("0")),
        ] {
            assert_eq!(header(error.clone(), "retry-after").as_deref(), expected, "{error:?}");
            let should_retry = if expected.is_some() { "true" } else { "false" };
            assert_eq!(header(error, "x-should-retry").as_deref(), Some(should_retry));
        }
    }

    #[test]
    fn a_quota_that_cannot_be_checked_is_an_outage_and_not_used_up() {
        let exceeded = |store_error: Option<&str>| {
            let limit = QuotaLimit::ConcurrentCalls(1);
            let (quota, retry_after) = ("ci".into(), Duration::from_secs(1));
            let store_error = store_error.map(str::to_owned);
            StartError::from(Box::new(QuotaExceeded { quota, limit, retry_after, store_error }))
        };
        let used_up = ApiError::from(exceeded(None));
        assert_eq!(
            (used_up.status, used_up.code),
            (StatusCode::TOO_MANY_REQUESTS, Some(ErrorCode::QuotaExceeded))
        );
        assert_eq!(exceeded(None).kind(), ErrorKind::QuotaExceeded);
        let outage = ApiError::from(exceeded(Some("timed out")));
        assert_eq!(
            (outage.status, outage.code),
            (StatusCode::SERVICE_UNAVAILABLE, Some(ErrorCode::StoreUnavailable))
        );
        assert!(outage.is_retryable());
        assert_eq!(exceeded(Some("timed out")).kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn a_body_that_cannot_be_written_is_a_defect_of_the_gateway() {
        let unwritable = std::collections::BTreeMap::from([((1, 2), "keys of JSON are strings")]);
        assert_eq!(json_of(StatusCode::OK, &unwritable).status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
