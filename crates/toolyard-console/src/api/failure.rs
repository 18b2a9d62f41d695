//! [`ApiFailure`]: a request that the API refused or that failed, or a form that the console refuses itself.

use http::StatusCode;
use serde::Deserialize;

/// A refused or failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiFailure {
    pub(crate) status: StatusCode,
    /// A stable word for the reason, of the API or of the console.
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Whether message and hint are in the language of the visitor. Those of the API are English.
    pub(crate) is_translated: bool,
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
            Ok(ErrorBody { error: ErrorDetails { message, code, hint } }) => {
                Self { status, code, message, hint, is_translated: false }
            }
            Err(_) => {
                let message = format!("the gateway answered with status {}", status.as_u16());
                Self { status, code: None, message, hint: None, is_translated: false }
            }
        }
    }

    /// A failure of the console itself. Its code has a text in every language.
    pub(crate) fn of_console(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: Some(code.to_owned()),
            message: message.into(),
            hint: None,
            is_translated: false,
        }
    }

    /// A failure with texts in the language of the visitor.
    pub(crate) fn translated(status: StatusCode, message: &str, hint: Option<&str>) -> Self {
        let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
        Self { status, code: None, message, hint, is_translated: true }
    }

    /// Whether this gateway does not have what was requested: an older API, no store, no agents.
    pub(crate) fn is_not_offered(&self) -> bool {
        let is_absent =
            |code: &str| code.ends_with("not_offered") || code == "route_not_found" || code == "no_store";
        self.status == StatusCode::NOT_FOUND && self.code.as_deref().is_none_or(is_absent)
            || self.status == StatusCode::METHOD_NOT_ALLOWED
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn codes_of_the_gateway_tell_what_it_does_not_offer() {
        let failure = |status: u16, code: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            ApiFailure::of_response(status, json!({"error": {"message": "m", "code": code}}))
        };
        for code in
            ["route_not_found", "not_offered", "agents_not_offered", "tool_calls_not_offered", "no_store"]
        {
            assert!(failure(404, code).is_not_offered(), "{code}");
            assert!(!failure(403, code).is_not_offered(), "{code}");
        }
        for code in ["run_not_found", "tool_not_found", "agent_not_found"] {
            assert!(!failure(404, code).is_not_offered(), "{code}");
        }
    }
}
