//! Why a model folder cannot be used.

use std::fmt::Display;
use std::path::PathBuf;

/// Why a model folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// A file of the folder could not be read.
    #[error(
        "read {}: {source}; a model folder holds config.json, model.safetensors and tokenizer.json or vocab.txt",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is larger than any model this is made for.
    #[error("{file} is larger than {limit} bytes; use a smaller model")]
    TooLarge {
        /// The file's name.
        file: &'static str,
        /// The most that is read.
        limit: u64,
    },
    /// A file is not what its name says.
    #[error("{file} is damaged: {reason}; fetch or distil the model again")]
    Damaged {
        /// The file's name.
        file: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The model is of a kind that is not known here.
    #[error("{what} is not supported; use a model2vec or BERT folder with a WordPiece tokenizer")]
    Unsupported {
        /// What is not known.
        what: String,
    },
}

impl EmbeddingError {
    pub(super) fn damaged(file: &'static str, reason: impl Display) -> Self {
        Self::Damaged { file, reason: format!("{reason}") }
    }

    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }
}
