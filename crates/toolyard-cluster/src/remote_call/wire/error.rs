//! The error of a call with all its parts.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolyard_core::{
    ArgumentProblem, ErrorKind, RawJson, RawToolError, SignInLink, SourceId, SourceSignal, ToolError,
    ToolErrorParts,
};

#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireError {
    kind: ErrorKind,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<SourceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caller_hint: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ArgumentProblem>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_signal: Option<SourceSignal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<Duration>,
    #[serde(default)]
    attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<WireRawError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sign_in: Option<WireSignIn>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireRawError {
    ToolResult(RawJson),
    Protocol(RawJson),
}

#[derive(Serialize, Deserialize)]
struct WireSignIn {
    source: String,
    id: String,
    url: String,
}

impl From<ToolError> for WireError {
    fn from(error: ToolError) -> Self {
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
        } = error.into();
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
            raw: raw.map(|raw| match raw {
                RawToolError::ToolResult(raw) => WireRawError::ToolResult(raw),
                RawToolError::Protocol(raw) => WireRawError::Protocol(raw),
            }),
            sign_in: sign_in.map(|link| {
                let url = link.url().to_owned();
                WireSignIn { source: link.source, id: link.id, url }
            }),
        }
    }
}

impl From<WireError> for ToolError {
    fn from(wire: WireError) -> Self {
        let WireError {
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
        } = wire;
        let raw = raw.map(|raw| match raw {
            WireRawError::ToolResult(raw) => RawToolError::ToolResult(raw),
            WireRawError::Protocol(raw) => RawToolError::Protocol(raw),
        });
        let sign_in = sign_in.map(|link| SignInLink::new(&link.source, &link.id, link.url));
        Self::from(ToolErrorParts {
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
        })
    }
}
