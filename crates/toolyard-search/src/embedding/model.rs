//! A model that embeds texts.

use std::path::Path;

use toolyard_core::ContentHash;

#[cfg(feature = "embedding-bert")]
use super::bert::Bert;
use super::{
    error::EmbeddingError, model_files::ModelFiles, semantic_weight::semantic_weight,
    static_model::StaticModel, vectors::Embedding,
};

/// A local embedding model.
#[derive(Debug)]
pub struct EmbeddingModel {
    kind: ModelKind,
    hash: ContentHash,
}

#[derive(Debug)]
enum ModelKind {
    Static(Box<StaticModel>),
    #[cfg(feature = "embedding-bert")]
    Bert(Box<Bert>),
}

impl EmbeddingModel {
    /// Reads a model folder: `config.json`, `model.safetensors`, and `tokenizer.json` or `vocab.txt`.
    pub fn open(folder: &Path) -> Result<Self, EmbeddingError> {
        Self::from_files(&ModelFiles::read(folder)?)
    }

    pub(super) fn from_files(files: &ModelFiles) -> Result<Self, EmbeddingError> {
        let kind = if files.is_bert()? {
            Self::bert(files)?
        } else {
            ModelKind::Static(Box::new(files.static_model()?))
        };
        Ok(Self { kind, hash: files.hash() })
    }

    #[cfg(feature = "embedding-bert")]
    fn bert(files: &ModelFiles) -> Result<ModelKind, EmbeddingError> {
        files.bert().map(|bert| ModelKind::Bert(Box::new(bert)))
    }

    #[cfg(not(feature = "embedding-bert"))]
    fn bert(_: &ModelFiles) -> Result<ModelKind, EmbeddingError> {
        Err(EmbeddingError::unsupported("a BERT model (this build reads static models only)"))
    }

    /// The embedding of a text; `None` if the model knows no word of it.
    pub fn embed(&self, text: &str) -> Option<Embedding> {
        self.embed_all(&[text]).pop().flatten()
    }

    /// The embeddings of several texts, in their order. For BERT models this is faster than one by one.
    pub fn embed_all(&self, texts: &[&str]) -> Vec<Option<Embedding>> {
        match &self.kind {
            ModelKind::Static(model) => texts.iter().map(|text| model.embed(text)).collect(),
            #[cfg(feature = "embedding-bert")]
            ModelKind::Bert(model) => model.embed(texts),
        }
    }

    /// Weight of semantic similarity for a request, relative to the score of the best lexical hit. `name_coverage` is the
    /// share of the name of that hit that the request mentions.
    ///
    /// The maxima were tuned on the development halves of the test sets of docs/search.md.
    pub(crate) fn semantic_weight(&self, name_coverage: f32) -> f32 {
        match &self.kind {
            ModelKind::Static(_) => semantic_weight(0.8, name_coverage),
            #[cfg(feature = "embedding-bert")]
            ModelKind::Bert(_) => semantic_weight(1.6, name_coverage),
        }
    }

    /// The hash of its files.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Number of dimensions of its embeddings.
    pub fn dimensions(&self) -> usize {
        match &self.kind {
            ModelKind::Static(model) => model.dimensions(),
            #[cfg(feature = "embedding-bert")]
            ModelKind::Bert(model) => model.dimensions(),
        }
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
