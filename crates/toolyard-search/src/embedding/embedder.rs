//! An embedding model that is opened on first use, and the embeddings it has computed.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use super::{
    model::EmbeddingModel,
    vector_cache::{TextKey, VectorCache},
    vectors::{Embedding, QuantizedEmbedding},
};

/// Texts that are embedded before their embeddings are available to others.
const TEXTS_PER_ROUND: usize = 48;

/// A model with the embeddings of texts it has computed, in this process or an earlier one.
///
/// Opening a model takes a few hundred milliseconds. Until [`Self::open`] was called there are no embeddings, and search
/// goes by words.
#[derive(Debug)]
pub struct Embedder {
    folder: PathBuf,
    cache_file: Option<PathBuf>,
    /// `None` if the model could not be opened.
    opened: OnceLock<Option<OpenedModel>>,
}

#[derive(Debug)]
struct OpenedModel {
    model: EmbeddingModel,
    cache: Mutex<VectorCache>,
}

impl Embedder {
    /// With an open model; embeddings are kept in memory only.
    pub fn new(model: EmbeddingModel) -> Self {
        let cache = Mutex::new(VectorCache::new(&model));
        let opened = OnceLock::from(Some(OpenedModel { model, cache }));
        Self { folder: PathBuf::new(), cache_file: None, opened }
    }

    /// With the model in `folder`, opened later. Embeddings are kept in `cache_file`, which may not exist yet; a damaged
    /// file or one of another model is replaced.
    pub fn in_folder(folder: &Path, cache_file: PathBuf) -> Self {
        Self { folder: folder.to_owned(), cache_file: Some(cache_file), opened: OnceLock::new() }
    }

    /// Opens the model unless that was done or has failed. Returns whether it is open.
    pub fn open(&self) -> bool {
        self.opened.get_or_init(|| self.read_model()).is_some()
    }

    fn read_model(&self) -> Option<OpenedModel> {
        match EmbeddingModel::open(&self.folder) {
            Ok(model) => {
                let cache = match &self.cache_file {
                    Some(file) => VectorCache::read(file, &model),
                    None => VectorCache::new(&model),
                };
                Some(OpenedModel { model, cache: Mutex::new(cache) })
            }
            Err(error) => {
                tracing::warn!(folder = %self.folder.display(), %error, "ignoring the embedding model; tools are searched by words");
                None
            }
        }
    }

    /// The model, if it was opened.
    pub fn opened_model(&self) -> Option<&EmbeddingModel> {
        self.opened().map(|opened| &opened.model)
    }

    /// The embedding of a request; `None` unless the model is open and knows a word of it.
    pub fn embed_request(&self, text: &str) -> Option<Embedding> {
        self.opened_model()?.embed(text)
    }

    /// Computes the embeddings of texts and keeps them. Opens the model if needed.
    pub fn embed(&self, texts: &[String]) {
        if !self.open() {
            return;
        }
        let Some(opened) = self.opened() else { return };
        for round in texts.chunks(TEXTS_PER_ROUND) {
            let unknown: Vec<&str> = {
                let cache = opened.cache();
                round
                    .iter()
                    .map(String::as_str)
                    .filter(|text| cache.get(&TextKey::of(text)).is_none())
                    .collect()
            };
            let embeddings = opened.model.embed_all(&unknown);
            let mut cache = opened.cache();
            for (text, embedding) in unknown.iter().zip(embeddings) {
                cache.insert(TextKey::of(text), embedding.map(|embedding| embedding.quantize()));
            }
        }
    }

    /// The known embeddings of texts; `None` unless all of them were computed. A text without known words has none.
    pub(crate) fn known(&self, texts: &[String]) -> Option<Vec<Arc<QuantizedEmbedding>>> {
        let cache = self.opened()?.cache();
        let known: Option<Vec<_>> = texts.iter().map(|text| cache.get(&TextKey::of(text))).collect();
        Some(known?.into_iter().flatten().collect())
    }

    /// Writes new embeddings to the cache file. A file that cannot be written costs time at the next start only.
    pub fn save(&self) {
        let (Some(opened), Some(file)) = (self.opened(), &self.cache_file) else { return };
        let Some(bytes) = opened.cache().take_unsaved_bytes(file) else { return };
        if let Err(error) = VectorCache::write(file, &bytes) {
            tracing::debug!(file = %file.display(), %error, "embeddings are not kept");
        }
    }

    fn opened(&self) -> Option<&OpenedModel> {
        self.opened.get()?.as_ref()
    }
}

impl OpenedModel {
    fn cache(&self) -> MutexGuard<'_, VectorCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "embedder_tests.rs"]
mod tests;
