//! The model of `[search] embeddings` as the hub's embedder.

use std::sync::{Arc, OnceLock};

use toolyard_core::{BoxFuture, Embedder, EmbeddingError};
use toolyard_model::OpenAiModel;

use crate::Models;

/// Builds its model when it is first needed: most processes never search, and an HTTP client costs start-up time.
#[derive(Debug)]
pub(crate) struct ModelEmbedder {
    models: Models,
    name: String,
    model: OnceLock<Arc<OpenAiModel>>,
}

impl ModelEmbedder {
    pub(crate) fn new(models: Models, name: String) -> Self {
        Self { models, name, model: OnceLock::new() }
    }

    async fn vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let model = match self.model.get() {
            Some(model) => model,
            None => {
                let model = self.models.get_openai(&self.name);
                let model = model.map_err(|error| EmbeddingError(error.to_string()))?;
                self.model.get_or_init(|| model)
            }
        };
        model.embeddings(texts).await.map_err(|error| EmbeddingError(error.to_string()))
    }
}

impl Embedder for ModelEmbedder {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbeddingError>> {
        Box::pin(self.vectors(texts))
    }
}
