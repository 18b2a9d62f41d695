//! Errors that model servers return, in the many forms in which they return them.

use std::time::Duration;

use serde_json::Value;

use crate::ModelErrorKind;

/// Characters that are quoted of a response that is not an error object.
const MAX_QUOTED_CHARS: usize = 300;

/// How servers say that a request exceeds the context window.
const CONTEXT_OVERFLOW_WORDS: &[&str] = &[
    // OpenAI and compatible servers: `context_length_exceeded`, "maximum context length is 8192 tokens"
    "context_length",
    "context length",
    // llama.cpp: `exceed_context_size_error`, "the request exceeds the available context size"
    "context_size",
    "context size",
    "context window",
    // Anthropic, Bedrock, Cohere
    "prompt is too long",
    "input is too long",
    "too many tokens",
    // Google: "The input token count (1200000) exceeds the maximum number of tokens allowed"
    "input token count",
    // DashScope: "Range of input length should be [1, 30720]"
    "range of input length",
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The HTTP status, or the one in the error object.
    pub status: Option<u16>,
    /// The server's error code or type.
    pub code: String,
    pub message: String,
    pub retry_after: Option<Duration>,
    /// Whether the response is neither a reply nor an error object.
    pub is_malformed: bool,
}

impl ServerError {
    /// A response that is neither a reply nor an error object.
    pub(crate) fn malformed(data: &str) -> Self {
        Self { message: data.chars().take(MAX_QUOTED_CHARS).collect(), is_malformed: true, ..Self::default() }
    }

    /// The error in a successful response, if there is one.
    pub(crate) fn find_in(value: &Value) -> Option<Self> {
        let is_error = value.get("object").and_then(Value::as_str) == Some("error")
            || value.get("type").and_then(Value::as_str) == Some("error");
        match value.get("error") {
            Some(Value::Null) | None if !is_error => None,
            // A flag beside a reply.
            Some(Value::Bool(false)) => None,
            Some(error @ (Value::Object(_) | Value::String(_))) => Some(Self::from_value(error)),
            _ => Some(Self::from_value(value)),
        }
    }

    /// The error in an event of the type `error`.
    pub(crate) fn from_event(data: &str) -> Self {
        let value: Value = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        Self::find_in(&value).unwrap_or_else(|| Self::from_value(&value))
    }

    /// The error in the body of a response with an error status.
    pub(crate) fn from_response(status: u16, body: &str) -> Self {
        let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        // Some servers return a list of one error.
        let value = value.get(0).unwrap_or(&value);
        let mut error = Self::find_in(value).unwrap_or_else(|| Self::from_value(value));
        if error.message.is_empty() && !body.trim_start().starts_with('<') {
            error.message = body.trim().chars().take(MAX_QUOTED_CHARS).collect();
        }
        error.status = Some(status);
        error
    }

    fn from_value(value: &Value) -> Self {
        let text_field = |field: &str| match value.get(field) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let code = text_field("code").or_else(|| text_field("type")).unwrap_or_default();
        let status = ["status", "status_code", "code"].iter().find_map(|field| {
            let value = value.get(*field)?;
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        });
        let plain = value.as_str().map(str::to_owned);
        let message = plain
            .or_else(|| text_field("message"))
            .or_else(|| text_field("detail"))
            .or_else(|| text_field("msg"));
        Self { status, code, message: message.unwrap_or_default(), ..Self::default() }
    }

    pub(crate) fn kind(&self) -> ModelErrorKind {
        if self.is_malformed {
            return ModelErrorKind::InvalidResponse;
        }
        if self.mentions(&["insufficient_quota", "arrearage", "billing", "insufficient balance"]) {
            return ModelErrorKind::Rejected;
        }
        match self.status {
            Some(400 | 413 | 422) | None if self.mentions(CONTEXT_OVERFLOW_WORDS) => {
                ModelErrorKind::ContextOverflow
            }
            Some(401 | 403) => ModelErrorKind::Unauthorized,
            // 501 is permanent, unlike the other 5xx.
            Some(400 | 413 | 415 | 422 | 501) => ModelErrorKind::Unsupported,
            Some(408 | 409 | 425 | 429 | 500..=599) => ModelErrorKind::Busy,
            Some(_) => ModelErrorKind::Rejected,
            None if self.mentions(&[
                "rate_limit",
                "rate limit",
                "overloaded",
                "too many requests",
                "server_error",
                "api_error",
                "timeout_error",
            ]) =>
            {
                ModelErrorKind::Busy
            }
            None if self.mentions(&["invalid_api_key", "unauthorized", "authentication"]) => {
                ModelErrorKind::Unauthorized
            }
            None => ModelErrorKind::Rejected,
        }
    }

    pub(crate) fn is_transient(&self) -> bool {
        self.kind() == ModelErrorKind::Busy
    }

    /// Whether code or message contain one of these, which are lowercase.
    pub(crate) fn mentions(&self, words: &[&str]) -> bool {
        let text = format!("{} {}", self.code, self.message).to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    }
}
