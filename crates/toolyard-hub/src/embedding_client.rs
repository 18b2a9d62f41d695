//! Asks for the embeddings of tools in the background, and of requests just before they are searched for.

use parking_lot::{Mutex, RwLock};
use std::{sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};
use toolyard_core::Embedder;
use toolyard_search::SearchIndex;

/// How long a search waits for the embedding of its request; then it goes by words.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);
/// The embedder is left alone for this long after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(60);
const MAX_BATCH_TEXTS: usize = 32;
/// Longer texts are truncated: small models read about as many tokens.
const MAX_TEXT_CHARS: usize = 400;

#[derive(Debug)]
pub(crate) struct EmbeddingClient {
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) index: Arc<RwLock<SearchIndex>>,
    /// Held while tools are embedded.
    pub(crate) embeds_tools: tokio::sync::Mutex<()>,
    /// `None` after a success.
    pub(crate) failed_at: Mutex<Option<Instant>>,
}

impl EmbeddingClient {
    /// Starts to embed the tools that have no embedding, unless that is being done. Every search starts it, so tools that are
    /// missed here, or while there is no runtime, have their embeddings after the next one.
    pub(crate) fn start(self: &Arc<Self>) {
        let (client, runtime) = (Arc::clone(self), Handle::try_current());
        let embed_tools = async move {
            let Ok(_guard) = client.embeds_tools.try_lock() else { return };
            loop {
                let texts = {
                    let index = client.index.read();
                    index.texts_to_embed(MAX_BATCH_TEXTS)
                };
                if texts.is_empty() || !client.embed(texts).await {
                    return;
                }
            }
        };
        drop(runtime.map(|runtime| runtime.spawn(embed_tools)));
    }

    /// Embeds requests that are about to be searched for, as far as that takes a moment only.
    pub(crate) async fn embed_requests(self: &Arc<Self>, requests: &[&str]) {
        self.start();
        let texts: Vec<String> = {
            let index = self.index.read();
            let unknown = requests.iter().filter(|request| index.lacks_embedding(request));
            unknown.map(|request| (*request).to_owned()).collect()
        };
        if !texts.is_empty() {
            let _ = timeout(REQUEST_TIMEOUT, self.embed(texts)).await;
        }
    }

    /// Adds the embeddings of texts to the index. Returns false if the embedder fails, or did a moment ago.
    async fn embed(&self, texts: Vec<String>) -> bool {
        let failed_at = || self.failed_at.lock();
        if failed_at().is_some_and(|at| at.elapsed() < RETRY_DELAY) {
            return false;
        }
        let truncated: Vec<String> =
            texts.iter().map(|text| text.chars().take(MAX_TEXT_CHARS).collect()).collect();
        match self.embedder.embed(&truncated).await {
            Ok(vectors) => {
                *failed_at() = None;
                let mut index = self.index.write();
                index.add_embeddings(texts, vectors);
                true
            }
            Err(error) => {
                // One line until it works again.
                if failed_at().replace(Instant::now()).is_none() {
                    tracing::warn!(%error, "tools are found by words only");
                }
                false
            }
        }
    }
}
