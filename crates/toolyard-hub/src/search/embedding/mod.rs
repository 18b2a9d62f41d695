//! Finds tools by what a request means, with a local model folder; optional, and never instead of the words.
//!
//! Two kinds of folders are read: static models as model2vec writes them, and BERT models (with the feature
//! `embedding-bert`). The search of words stays in charge: [`Gate`] says how much meaning may add to it.

#[cfg(feature = "embedding-bert")]
mod bert;
mod error;
mod folder;
mod gate;
mod static_model;
mod tensors;
mod text;
mod vector;
mod word_pieces;

pub use error::EmbeddingError;
pub use folder::ModelFiles;
pub use gate::Gate;
pub use text::{meaning_text, request_text};
pub use vector::{StoredVector, Vector};

use std::path::Path;

/// A model that places texts by their meaning.
#[derive(Debug)]
pub struct EmbeddingModel {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Static(Box<static_model::StaticModel>),
    #[cfg(feature = "embedding-bert")]
    Bert(Box<bert::Bert>),
}

impl EmbeddingModel {
    /// Reads a model folder: `config.json`, `model.safetensors`, and `tokenizer.json` or `vocab.txt`.
    pub fn open(folder: &Path) -> Result<Self, EmbeddingError> {
        Self::from_files(&ModelFiles::read(folder)?)
    }

    /// Takes a model out of the bytes of its files.
    pub fn from_files(files: &ModelFiles) -> Result<Self, EmbeddingError> {
        let kind =
            if files.is_bert()? { Self::bert(files)? } else { Kind::Static(Box::new(files.static_model()?)) };
        Ok(Self { kind })
    }

    #[cfg(feature = "embedding-bert")]
    fn bert(files: &ModelFiles) -> Result<Kind, EmbeddingError> {
        files.bert().map(|bert| Kind::Bert(Box::new(bert)))
    }

    #[cfg(not(feature = "embedding-bert"))]
    fn bert(_: &ModelFiles) -> Result<Kind, EmbeddingError> {
        Err(EmbeddingError::unsupported("a BERT model (this build reads static models only)"))
    }

    /// What a text means; `None` if the model knows nothing in it.
    pub fn embed(&self, text: &str) -> Option<Vector> {
        match &self.kind {
            Kind::Static(model) => model.embed(text),
            #[cfg(feature = "embedding-bert")]
            Kind::Bert(model) => model.embed(text),
        }
    }

    /// How alike a request and a tool are, both placed by this model.
    pub fn score(&self, request: &Vector, tool: &StoredVector) -> f32 {
        tool.dot(request)
    }

    /// How much meaning may add to the search of words for one request; see [`Gate::of`].
    ///
    /// The weights were found on the development halves of ten sets of requests: the most that cost none of them a point.
    pub fn gate(&self, name_said: f32) -> Gate {
        match &self.kind {
            Kind::Static(_) => Gate::of(0.8, name_said),
            #[cfg(feature = "embedding-bert")]
            Kind::Bert(_) => Gate::of(1.2, name_said),
        }
    }

    /// How many coordinates its vectors have.
    pub fn dimensions(&self) -> usize {
        match &self.kind {
            Kind::Static(model) => model.dimensions(),
            #[cfg(feature = "embedding-bert")]
            Kind::Bert(model) => model.dimensions(),
        }
    }
}

#[cfg(test)]
#[path = "embedding_tests.rs"]
mod tests;
