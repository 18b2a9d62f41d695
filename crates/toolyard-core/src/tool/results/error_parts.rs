//! [`ToolErrorParts`]: all parts of a [`ToolError`], to send it to another process and put it together there.

use std::time::Duration;

use super::{
    error::{ArgumentProblem, ErrorKind, Inner, RawToolError, SourceSignal, ToolError, redacted},
    sign_in::SignInLink,
};
use crate::SourceId;

/// All parts of a [`ToolError`]. `ToolError::from(ToolErrorParts::from(error))` equals `error`, except for the mark of
/// [`ToolError::mark_never_sent`], which never leaves the process.
///
/// Unlike the serialized form of an error, which is for people and models, the parts are complete: they contain what the server
/// sent and the link of a sign-in. They are for transfer between processes of one operator, not for logs or stores.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolErrorParts {
    /// The class of failure.
    pub kind: ErrorKind,
    /// What failed, without tool and source.
    pub message: String,
    /// The tool that was called.
    pub tool: Option<String>,
    /// The source that was called.
    pub source: Option<SourceId>,
    /// All hints, including those for the operator.
    pub hint: Option<String>,
    /// The hints for a client or model, without the instruction of `sign_in`.
    pub caller_hint: Option<String>,
    /// The values in the arguments that violate the schema.
    pub problems: Vec<ArgumentProblem>,
    /// Whether another attempt can help; none if the kind decides.
    pub retryable: Option<bool>,
    /// What the failure says about the source as a whole; none if the kind decides.
    pub source_signal: Option<SourceSignal>,
    /// How long the source asks to wait before another attempt.
    pub retry_after: Option<Duration>,
    /// How many calls were made.
    pub attempts: u32,
    /// What the server sent, if the failure is the server's.
    pub raw: Option<RawToolError>,
    /// Where the caller can sign in.
    pub sign_in: Option<SignInLink>,
}

impl From<ToolError> for ToolErrorParts {
    fn from(error: ToolError) -> Self {
        let Inner {
            kind,
            message,
            tool,
            source,
            hint,
            caller_hint,
            problems,
            retryable,
            source_signal,
            retry_after,
            attempts,
            raw,
            sign_in,
            never_sent: _,
        } = *error.0;
        Self {
            kind,
            message,
            tool,
            source,
            hint,
            caller_hint,
            problems,
            retryable,
            source_signal,
            retry_after,
            attempts,
            raw,
            sign_in,
        }
    }
}

impl From<ToolErrorParts> for ToolError {
    /// Redacts secrets in message and hints, as [`ToolError::new`] does. Text that was redacted before stays the same.
    fn from(parts: ToolErrorParts) -> Self {
        let ToolErrorParts {
            kind,
            message,
            tool,
            source,
            hint,
            caller_hint,
            problems,
            retryable,
            source_signal,
            retry_after,
            attempts,
            raw,
            sign_in,
        } = parts;
        Self(Box::new(Inner {
            kind,
            message: redacted(message),
            tool,
            source,
            hint: hint.map(redacted),
            caller_hint: caller_hint.map(redacted),
            problems,
            retryable,
            source_signal,
            retry_after,
            attempts,
            raw,
            sign_in,
            never_sent: false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawJson;

    #[test]
    fn an_error_survives_being_taken_apart() {
        let problem = ArgumentProblem { path: "/a".to_owned(), message: "missing".to_owned() };
        let error = ToolError::invalid_arguments(vec![problem])
            .on_tool("search")
            .on_source(&"jira".into())
            .with_hint("for all")
            .with_operator_hint("for the operator")
            .with_caller_hint("for the caller")
            .with_retryable(true)
            .with_source_signal(SourceSignal::Unknown)
            .with_retry_after(Duration::from_millis(1_500))
            .with_attempts(3)
            .with_raw(RawToolError::Protocol(RawJson::empty_object()))
            .with_sign_in(SignInLink::new("jira", "5e1f", "https://tools.example/sign-in/0123".to_owned()));
        let parts = ToolErrorParts::from(error.clone());
        assert_eq!(parts.caller_hint.as_deref(), Some("for all · for the caller"));
        assert!(!format!("{parts:?}").contains("0123"));
        assert_eq!(ToolError::from(parts), error);
    }

    #[test]
    fn the_mark_of_a_call_that_was_never_sent_stays_in_the_process() {
        let unmarked = ToolError::new(ErrorKind::Unavailable, "connection refused");
        let marked = unmarked.clone().mark_never_sent();
        assert!(marked.clone().take_never_sent());
        let serialized = |error: &ToolError| serde_json::to_string(error).unwrap();
        assert_eq!(serialized(&marked), serialized(&unmarked));
        assert!(!ToolError::from(ToolErrorParts::from(marked)).take_never_sent());
    }

    #[test]
    fn secrets_in_parts_are_redacted() {
        let secret = format!("ghp_{}", "a1B2c3D4e5".repeat(4).get(..36).unwrap());
        let mut parts = ToolErrorParts::from(ToolError::failed("x"));
        parts.message = format!("token {secret} refused");
        parts.hint = Some(format!("renew {secret}"));
        parts.caller_hint.clone_from(&parts.hint);
        let error = ToolError::from(parts);
        assert!(!format!("{error:?}").contains(&secret), "{error:?}");
    }
}
