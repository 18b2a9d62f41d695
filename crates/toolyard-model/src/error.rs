//! Why a model did not answer.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Why a model did not answer: which, what happened, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("model {model} {message}")]
pub struct ModelError {
    /// Which model.
    pub model: String,
    /// The class of failure.
    pub kind: ModelErrorKind,
    /// What happened, as the rest of a sentence, secrets removed.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What the request cost nevertheless, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
}

/// Classes of failures of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// Nobody answered at its address.
    Unreachable,
    /// It did not begin to answer, or fell silent.
    Timeout,
    /// Too many requests, or it is overloaded.
    Busy,
    /// The key is wrong or missing.
    Unauthorized,
    /// It cannot do what was asked: a schema, tools, so long a prompt.
    Unsupported,
    /// Anything else it said no to.
    Refused,
    /// What it said cannot be understood.
    Garbled,
}

impl ModelError {
    /// An error without a hint.
    pub fn new(model: impl Into<String>, kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { model: model.into(), kind, message: message.into(), hint: None, usage: None }
    }

    /// The same error with something to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error of a request that cost something nevertheless.
    #[must_use]
    pub fn having_used(mut self, usage: Usage) -> Self {
        self.usage = (usage != Usage::default()).then(|| Box::new(usage));
        self
    }

    /// What the request cost nevertheless, as far as that is known.
    pub fn used(&self) -> Usage {
        self.usage.as_deref().copied().unwrap_or_default()
    }
}
