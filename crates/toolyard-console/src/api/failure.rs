//! [`ApiFailure`]: why the API refused a request.

use http::StatusCode;
use serde::Deserialize;

/// A refused or failed request to the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiFailure {
    pub(crate) status: StatusCode,
    /// The stable word of the API for it.
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    error: ErrorDetails,
}

#[derive(Debug, Deserialize)]
struct ErrorDetails {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    hint: Option<String>,
}

impl ApiFailure {
    /// The failure that a response describes.
    pub(crate) fn of_response(status: StatusCode, body: serde_json::Value) -> Self {
        match serde_json::from_value::<ErrorBody>(body) {
            Ok(ErrorBody { error }) => {
                Self { status, code: error.code, message: error.message, hint: error.hint }
            }
            Err(_) => {
                Self::of_status(status, format!("the gateway answered with status {}", status.as_u16()))
            }
        }
    }

    pub(crate) fn of_status(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, code: None, message: message.into(), hint: None }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::of_status(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Whether this gateway does not have what was asked for: an older API, no store, no agents.
    pub(crate) fn is_not_offered(&self) -> bool {
        let codes =
            ["route_not_found", "not_offered", "agents_not_offered", "no_store", "store_not_configured"];
        self.status == StatusCode::NOT_FOUND && self.code.as_deref().is_none_or(|code| codes.contains(&code))
            || self.status == StatusCode::METHOD_NOT_ALLOWED
    }
}
