//! Embeddings of indexed tools that are computed later, so that neither indexing nor searching waits for them.

use std::sync::Arc;

use crate::{
    embedding::Embedder,
    index::search_index::{Document, SearchIndex},
};

impl Document {
    /// Takes over the embeddings of its texts, if all of them are known.
    pub(crate) fn take_known_embeddings(&mut self, embedder: &Embedder) {
        if self.pending_texts.is_empty() {
            return;
        }
        let Some(known) = embedder.known(&self.pending_texts) else { return };
        self.embeddings = known.into();
        self.pending_texts = Box::default();
    }
}

impl SearchIndex {
    /// The model of semantic search and what it has computed.
    pub fn embedder(&self) -> Option<&Arc<Embedder>> {
        self.embedder.as_ref()
    }

    /// The texts of tools that have no embedding yet, of about `max_texts` texts.
    pub fn texts_to_embed(&self, max_texts: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for (_, document) in self.documents() {
            if texts.len() >= max_texts {
                break;
            }
            texts.extend(document.pending_texts.iter().cloned());
        }
        texts
    }

    /// Number of tools that have no embedding yet.
    pub fn tools_to_embed(&self) -> usize {
        self.documents().filter(|(_, document)| !document.pending_texts.is_empty()).count()
    }

    /// Takes over the embeddings that the model has computed since.
    pub fn take_known_embeddings(&mut self) {
        let Some(embedder) = self.embedder.clone() else { return };
        self.documents_mut().for_each(|document| document.take_known_embeddings(&embedder));
    }

    /// Computes the embeddings of all tools that have none.
    pub fn embed_pending(&mut self) {
        let Some(embedder) = self.embedder.clone() else { return };
        embedder.embed(&self.texts_to_embed(usize::MAX));
        self.take_known_embeddings();
    }
}
