//! Answers to requests for agents and runs, errors in the form that OpenAI's clients know.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use toolyard_agent::AgentError;
use toolyard_core::redact;
use toolyard_mcp::server::PageAnswer;

use super::live_runs::NotBegun;
use crate::AgentsError;

/// Clients that repeat requests by themselves leave it, except where nothing was begun: what an agent did must not be done
/// again by accident.
static MAY_REPEAT: HeaderName = HeaderName::from_static("x-should-retry");

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    /// In OpenAI's words: `invalid_request_error`, `server_error`, ….
    pub(super) kind: &'static str,
    pub(super) message: String,
    /// The field that is wrong.
    pub(super) param: Option<String>,
    pub(super) code: Option<&'static str>,
}

impl Refused {
    /// The request makes no sense.
    pub(super) fn bad(param: &str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            message: message.into(),
            param: Some(param.to_owned()).filter(|param| !param.is_empty()),
            code: None,
        }
    }

    /// What is asked for does not exist.
    pub(super) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, code: Some(code), ..Self::bad("", message) }
    }

    /// It went wrong here. Not with a status upon which clients repeat the request by themselves.
    pub(super) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            kind: "server_error",
            code: Some(code),
            ..Self::bad("", message)
        }
    }

    /// As data.
    pub(super) fn value(&self) -> Value {
        let Self { kind, message, param, code, .. } = self;
        json!({"error": {"message": redact(message), "type": kind, "param": param, "code": code}})
    }
}

impl From<Refused> for PageAnswer {
    fn from(refused: Refused) -> Self {
        let mut answer = json_answer(refused.status, &refused.value());
        let again = if refused.status == StatusCode::SERVICE_UNAVAILABLE { "true" } else { "false" };
        answer.headers.push((MAY_REPEAT.clone(), HeaderValue::from_static(again)));
        answer
    }
}

impl From<AgentsError> for Refused {
    fn from(error: AgentsError) -> Self {
        match error {
            AgentsError::Unknown { .. } => Self {
                param: Some("model".to_owned()),
                ..Self::not_found("model_not_found", error.to_string())
            },
            other => Self::failed("agent_without_model", other.to_string()),
        }
    }
}

impl From<AgentError> for Refused {
    fn from(error: AgentError) -> Self {
        use toolyard_core::JournalError as J;
        match error {
            AgentError::Journal(J::UnknownRun(_)) | AgentError::OtherKind { .. } => {
                Self::not_found("run_not_found", error.to_string())
            }
            AgentError::Over(_) | AgentError::Journal(J::Held { .. }) => Self::bad("", error.to_string()),
            other => Self::failed("run_left_as_it_is", other.to_string()),
        }
    }
}

impl From<NotBegun> for Refused {
    fn from(error: NotBegun) -> Self {
        match error {
            NotBegun::Agent(error) => error.into(),
            NotBegun::Closing => {
                Self { status: StatusCode::SERVICE_UNAVAILABLE, ..Self::failed("closing", error.to_string()) }
            }
            NotBegun::Lost => Self::failed("run_left_as_it_is", error.to_string()),
        }
    }
}

/// Data as an answer.
pub(super) fn json_answer(status: StatusCode, value: &Value) -> PageAnswer {
    PageAnswer::json(status, Bytes::from(value.to_string()))
}
