//! Asks for the embeddings of tools in the background, and of requests just before they are searched for.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, RwLock};
use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};
use toolyard_core::{Embedder, EmbeddingError};
use toolyard_search::{MAX_EMBEDDED_CHARS, SearchIndex};

/// How long a search waits for the embedding of its request; then it goes by words.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);
/// The embedder is left alone for this long after a failure, and no search waits for it after one waited in vain.
const RETRY_DELAY: Duration = Duration::from_secs(60);
const MAX_BATCH_TEXTS: usize = 32;
/// A text that every embedder accepts, which tells whether it refuses one text or all.
const PLAIN_TEXT: &str = "tool";

#[derive(Debug)]
pub(crate) struct EmbeddingClient {
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) index: Arc<RwLock<SearchIndex>>,
    /// Held while tools are embedded.
    pub(crate) embeds_tools: tokio::sync::Mutex<()>,
    /// Held while requests are embedded for which no search waits.
    pub(crate) embeds_slowly: tokio::sync::Mutex<()>,
    /// `None` after a success.
    pub(crate) failed_at: Mutex<Option<Instant>>,
    /// When a search waited in vain.
    pub(crate) slow_at: Mutex<Option<Instant>>,
}

impl EmbeddingClient {
    /// Starts to embed the tools that have no embedding, unless that is being done. Every search starts it, so tools that are
    /// missed here, or while there is no runtime, have their embeddings after the next one.
    pub(crate) fn start(self: &Arc<Self>) {
        if !self.index.read().may_lack_embeddings() {
            return;
        }
        let (client, runtime) = (Arc::clone(self), Handle::try_current());
        let embed_tools = async move {
            let Ok(_guard) = client.embeds_tools.try_lock() else { return };
            loop {
                let texts = client.index.write().texts_to_embed(MAX_BATCH_TEXTS);
                if texts.is_empty() || !client.embed(texts).await {
                    return;
                }
            }
        };
        drop(runtime.map(|runtime| runtime.spawn(embed_tools)));
    }

    /// Embeds requests that are about to be searched for. Waits as far as that takes a moment only; what takes longer is there
    /// for later searches.
    pub(crate) async fn embed_requests(self: &Arc<Self>, requests: &[&str]) {
        self.start();
        let texts: Vec<String> = {
            let index = self.index.read();
            let unknown = requests
                .iter()
                .filter(|request| !request.trim().is_empty() && index.lacks_embedding(request));
            unknown.map(|request| (*request).to_owned()).collect()
        };
        if texts.is_empty() || is_recent(&self.failed_at) {
            return;
        }
        let client = Arc::clone(self);
        if is_recent(&self.slow_at) {
            drop(tokio::spawn(async move {
                // One at a time: a slow embedder would be asked faster than it answers.
                let Ok(_guard) = client.embeds_slowly.try_lock() else { return };
                client.embed(texts).await;
            }));
            return;
        }
        let embedding = tokio::spawn(async move { client.embed(texts).await });
        if timeout(REQUEST_TIMEOUT, embedding).await.is_err() {
            *self.slow_at.lock() = Some(Instant::now());
        }
    }

    /// Adds the embeddings of texts to the index. Returns false if the embedder fails, or did a moment ago.
    async fn embed(&self, texts: Vec<String>) -> bool {
        if is_recent(&self.failed_at) {
            return false;
        }
        match self.vectors(&texts).await {
            Ok(vectors) => self.add(texts, vectors),
            Err(error) if error.is_unreachable => return self.fail(&error),
            // One of the texts may be refused.
            Err(_) => {
                for text in texts {
                    let text = [text];
                    let vectors = match self.vectors(&text).await {
                        Ok(vectors) => vectors,
                        Err(error) if error.is_unreachable => return self.fail(&error),
                        Err(_) => match self.vectors(&[PLAIN_TEXT.to_owned()]).await {
                            // Known from now on, and near to nothing.
                            Ok(_) => vec![Vec::new()],
                            Err(error) => return self.fail(&error),
                        },
                    };
                    self.add(text.into(), vectors);
                }
            }
        }
        *self.failed_at.lock() = None;
        true
    }

    /// One vector for each text.
    async fn vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let truncated: Vec<String> =
            texts.iter().map(|text| text.chars().take(MAX_EMBEDDED_CHARS).collect()).collect();
        let vectors = self.embedder.embed(&truncated).await?;
        if vectors.len() != texts.len() {
            let message = format!("{} vectors arrived for {} texts", vectors.len(), texts.len());
            return Err(EmbeddingError { message, is_unreachable: false });
        }
        Ok(vectors)
    }

    fn add(&self, texts: Vec<String>, vectors: Vec<Vec<f32>>) {
        self.index.write().add_embeddings(texts, vectors);
    }

    fn fail(&self, error: &EmbeddingError) -> bool {
        // One line until it works again.
        if self.failed_at.lock().replace(Instant::now()).is_none() {
            tracing::warn!(%error, "tools are found by words only");
        }
        false
    }
}

fn is_recent(at: &Mutex<Option<Instant>>) -> bool {
    at.lock().is_some_and(|at| at.elapsed() < RETRY_DELAY)
}
