//! The one thing the hub asks of a language model: to put several answers together.

use crate::{BoxFuture, SourceId};

/// Several answers to one call, already cut to size, and the prompt that asks for one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SynthesisRequest {
    /// The tool or capability that was called.
    pub subject: String,
    /// The answers.
    pub pieces: Vec<SynthesisPiece>,
    /// All of it as a prompt for a model.
    pub prompt: String,
}

/// One source's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SynthesisPiece {
    /// Who answered.
    pub source: SourceId,
    /// What, cut to size.
    pub text: String,
}

/// Why there is no synthesis; the hub then merges the answers itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to put the answers together: {0}")]
pub struct SynthesisError(pub String);

/// Puts several answers together; normally a language model.
pub trait Synthesizer: Send + Sync {
    /// One text out of several.
    fn synthesize<'a>(
        &'a self,
        request: &'a SynthesisRequest,
    ) -> BoxFuture<'a, Result<String, SynthesisError>>;
}
