//! Synthesis: a language model combines the outputs of several sources.

use std::{fmt, sync::Arc};

use crate::{
    BoxFuture, SourceId,
    telemetry::{SpanContext, Telemetry},
};

/// Several outputs of one call, already truncated, and the prompt that asks for one answer.
#[derive(Debug, Clone)]
pub struct SynthesisRequest {
    /// The tool or capability that was called.
    pub subject: String,
    /// The outputs.
    pub inputs: Vec<SynthesisInput>,
    /// The prompt for the model.
    pub prompt: String,
    /// The span of the call whose outputs are combined.
    pub span: Option<SpanContext>,
    /// Where the model call is reported.
    pub telemetry: Option<Arc<dyn Telemetry>>,
}

/// The output of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SynthesisInput {
    /// The source.
    pub source: SourceId,
    /// Its output, truncated.
    pub text: String,
}

/// The model that merges the outputs of several sources failed. The outputs are merged without it.
///
/// Remedy: check the model with `toolyard models test NAME`, or set `[call] synthesis = "merge"`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("synthesis failed: {0}")]
pub struct SynthesisError(pub String);

/// Combines several outputs into one, normally with a language model.
pub trait Synthesizer: Send + Sync + fmt::Debug {
    /// Combines the outputs into one text.
    fn synthesize<'a>(
        &'a self,
        request: &'a SynthesisRequest,
    ) -> BoxFuture<'a, Result<String, SynthesisError>>;
}
