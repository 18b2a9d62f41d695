//! Errors of models.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// A request to a language model failed; the text says how.
///
/// Remedy: test the model with `toolyard models test NAME`; its settings are in `[models.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("model `{model}` {message}")]
pub struct ModelError {
    /// The model's name.
    pub model: String,
    /// The class of failure.
    pub kind: ModelErrorKind,
    /// A predicate whose subject is the model, such as `cannot be reached`; secrets are redacted.
    pub message: String,
    /// What the operator can do about it.
    pub hint: Option<String>,
    /// Usage of the failed request, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
}

/// Classes of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The server cannot be reached.
    Unreachable,
    /// The reply did not start or continue in time.
    Timeout,
    /// The server is overloaded or limits the rate of requests.
    Busy,
    /// The API key is invalid or missing.
    Unauthorized,
    /// The model does not support the request: its schema or its tools.
    Unsupported,
    /// The request exceeds the model's context window.
    ContextOverflow,
    /// The server rejected the request for another reason.
    Rejected,
    /// The response cannot be parsed.
    InvalidResponse,
}

impl ModelErrorKind {
    /// The name in snake case, as in serialized form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::Unauthorized => "unauthorized",
            Self::Unsupported => "unsupported",
            Self::ContextOverflow => "context_overflow",
            Self::Rejected => "rejected",
            Self::InvalidResponse => "invalid_response",
        }
    }

    /// Whether the model cannot be used for a while, so that the same request may succeed later.
    pub fn is_outage(self) -> bool {
        matches!(self, Self::Unreachable | Self::Timeout | Self::Busy)
    }
}

impl ModelError {
    /// An error without a hint.
    pub fn new(model: impl Into<String>, kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { model: model.into(), kind, message: message.into(), hint: None, usage: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the usage of the failed request.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = (usage != Usage::default()).then(|| Box::new(usage));
        self
    }

    /// The usage of the failed request; zero if it is not known.
    pub fn usage(&self) -> Usage {
        self.usage.as_deref().copied().unwrap_or_default()
    }
}
