//! `/v1/embeddings` of an OpenAI-compatible server.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use toolyard_core::{BoxFuture, Embedder, EmbeddingError};

use super::OpenAiModel;
use crate::{ModelError, ModelErrorKind};

/// A server may have to load its model first.
const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Deserialize)]
struct EmbeddingList {
    data: Vec<EmbeddingEntry>,
}

#[derive(Deserialize)]
struct EmbeddingEntry {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

impl OpenAiModel {
    /// The embeddings of texts, in their order.
    pub async fn embeddings(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let connection = &self.connection;
        let body = json!({"model": connection.config.model, "input": texts});
        let request = connection.post("embeddings").timeout(EMBEDDING_TIMEOUT).json(&body);
        let body = connection.fetch_small_body(request).await?;
        let list: Option<EmbeddingList> = serde_json::from_str(&body).ok();
        let Some(mut list) = list.filter(|list| list.data.len() == texts.len()) else {
            let message = "got no list of embeddings from its server";
            return Err(connection.reporter.error(ModelErrorKind::InvalidResponse, message));
        };
        list.data.sort_by_key(|entry| entry.index);
        Ok(list.data.into_iter().map(|entry| entry.embedding).collect())
    }
}

impl Embedder for OpenAiModel {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbeddingError>> {
        Box::pin(async move {
            self.embeddings(texts).await.map_err(|error| EmbeddingError {
                message: error.to_string(),
                // Some servers refuse a text with a status by which others say that they are busy.
                is_unreachable: matches!(error.kind, ModelErrorKind::Unreachable | ModelErrorKind::Timeout),
            })
        })
    }
}
