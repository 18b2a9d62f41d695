//! Embeddings: vectors of texts that are near to each other if the texts are near in meaning.

use std::fmt;

use crate::BoxFuture;

/// The model that computes embeddings for tool search failed. Tools are found by words until it answers.
///
/// Remedy: check that the server of the model that `[search] embeddings` names is running and has an embedding model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("embedding failed: {message}")]
pub struct EmbeddingError {
    /// What failed.
    pub message: String,
    /// Whether no answer arrived at all. Otherwise the embedder may refuse one of the texts and answer others.
    pub is_unreachable: bool,
}

/// Computes embeddings, normally with a model.
pub trait Embedder: Send + Sync + fmt::Debug {
    /// The vectors of texts, in their order.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbeddingError>>;
}
