//! Asks for the embeddings of tools in the background, and of requests just before they are searched for.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};
use toolyard_core::{Embedder, EmbeddingError};
use toolyard_search::SearchIndex;

/// How long a search waits for the embedding of its request; then it goes by words.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);
/// Limits the time for a batch of tools.
const BATCH_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_BATCH_TEXTS: usize = 32;
/// The embedder is left alone for this long after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct EmbeddingClient {
    embedder: Arc<dyn Embedder>,
    index: Arc<RwLock<SearchIndex>>,
    /// Held while tools are embedded.
    is_embedding_tools: tokio::sync::Mutex<()>,
    /// `None` after a success.
    failed_at: Mutex<Option<Instant>>,
}

impl EmbeddingClient {
    pub(crate) fn new(embedder: Arc<dyn Embedder>, index: Arc<RwLock<SearchIndex>>) -> Arc<Self> {
        let (is_embedding_tools, failed_at) = (tokio::sync::Mutex::new(()), Mutex::default());
        Arc::new(Self { embedder, index, is_embedding_tools, failed_at })
    }

    /// Starts to embed the tools that have no embedding, unless that is being done. Every search starts it, so tools that are
    /// missed here, or while there is no runtime, have their embeddings after the next one.
    pub(crate) fn start(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current() {
            let client = Arc::clone(self);
            runtime.spawn(async move { client.embed_tools().await });
        }
    }

    async fn embed_tools(&self) {
        let Ok(_guard) = self.is_embedding_tools.try_lock() else { return };
        loop {
            let texts = self.read().texts_to_embed(MAX_BATCH_TEXTS);
            if texts.is_empty() {
                return;
            }
            let Some(vectors) = self.embed(&texts).await else { return };
            self.write().add_embeddings(&texts, vectors);
        }
    }

    /// Embeds requests that are about to be searched for, as far as that takes a moment only.
    pub(crate) async fn embed_requests(self: &Arc<Self>, requests: &[&str]) {
        self.start();
        let (requests, texts): (Vec<&str>, Vec<String>) = {
            let index = self.read();
            requests.iter().filter_map(|request| Some((*request, index.request_to_embed(request)?))).unzip()
        };
        if texts.is_empty() {
            return;
        }
        let Ok(Some(vectors)) = timeout(REQUEST_TIMEOUT, self.embed(&texts)).await else { return };
        let mut index = self.write();
        for (request, vector) in requests.into_iter().zip(vectors) {
            index.add_request_embedding(request, vector);
        }
    }

    /// The vectors of texts; `None` if the embedder fails, or did a moment ago.
    async fn embed(&self, texts: &[String]) -> Option<Vec<Vec<f32>>> {
        let failed_at = *self.failed_at();
        if failed_at.is_some_and(|at| at.elapsed() < RETRY_DELAY) {
            return None;
        }
        let error = match timeout(BATCH_TIMEOUT, self.embedder.embed(texts)).await {
            Ok(Ok(vectors)) if vectors.len() == texts.len() => {
                *self.failed_at() = None;
                return Some(vectors);
            }
            Ok(Ok(vectors)) => EmbeddingError(format!("{} vectors for {} texts", vectors.len(), texts.len())),
            Ok(Err(error)) => error,
            Err(_) => EmbeddingError(format!("no answer within {} s", BATCH_TIMEOUT.as_secs())),
        };
        // One line until it works again.
        if self.failed_at().replace(Instant::now()).is_none() {
            tracing::warn!(%error, "tools are found by words only");
        }
        None
    }

    fn failed_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, SearchIndex> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, SearchIndex> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}
