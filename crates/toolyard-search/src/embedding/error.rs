//! Errors of embedding models.

use std::fmt::Display;
use std::path::PathBuf;

/// A model folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// A file of the folder with the search model cannot be read.
    ///
    /// Remedy: install the model again with `toolyard search-model install`, or correct `tool_search_model`.
    #[error(
        "failed to read {}: {source}; a model folder holds config.json, model.safetensors and tokenizer.json or vocab.txt",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file of the search model is too large to be used.
    ///
    /// Remedy: use a smaller model, or that of `toolyard search-model install`.
    #[error("{file} is larger than {limit} bytes; use a smaller model")]
    TooLarge {
        /// The file's name.
        file: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file of the search model has invalid content.
    ///
    /// Remedy: install it again: `toolyard search-model install`.
    #[error("{file} is damaged: {reason}; download the model again")]
    Damaged {
        /// The file's name.
        file: &'static str,
        /// The reason.
        reason: String,
    },
    /// The type of the model, or of its tokenizer, is not supported.
    ///
    /// Remedy: use a model2vec or BERT model with a WordPiece tokenizer, or that of `toolyard search-model install`.
    #[error("{feature} is not supported; use a model2vec or BERT folder with a WordPiece tokenizer")]
    Unsupported {
        /// The unsupported feature.
        feature: String,
    },
}

impl EmbeddingError {
    pub(super) fn damaged(file: &'static str, reason: impl Display) -> Self {
        Self::Damaged { file, reason: format!("{reason}") }
    }

    pub(super) fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported { feature: feature.into() }
    }
}
