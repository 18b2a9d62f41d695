//! The index of all tools. Adding or removing a server costs time in proportion to its own tools only.

use std::{collections::HashMap, ops::Range, sync::Arc};

use crate::{
    accumulator::DocumentId,
    document::{ServerText, ToolText},
    history::{RequestHistory, request_terms},
    index::{
        analyzer::{AnalyzedTool, analyze_server},
        vocabulary::{Impact, TermId, Vocabulary},
    },
    lexicon::Lexicon,
};
#[cfg(feature = "embedding")]
use crate::{embedding::EmbeddingModel, index::tool_embedding::ToolEmbedding};

/// Unused document numbers beyond this many (plus one per tool) are reclaimed.
const MAX_FREE_IDS: usize = 4096;

/// One tool as indexed.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) server: Arc<str>,
    pub(crate) key: Arc<str>,
    /// Lowercase name; tools with the same name may be duplicates.
    pub(crate) name: Box<str>,
    /// Terms sorted by number, with their impacts.
    pub(crate) terms: Box<[(TermId, Impact)]>,
    /// Hashes of adjacent terms, sorted.
    pub(crate) bigrams: Box<[u32]>,
    #[cfg(feature = "embedding")]
    pub(crate) embedding: Option<ToolEmbedding>,
}

impl Document {
    /// Impact of a term on this tool.
    pub(crate) fn impact(&self, term: TermId) -> Option<f32> {
        let at = self.terms.binary_search_by_key(&term, |(term, _)| *term).ok()?;
        self.terms.get(at).map(|(_, impact)| impact.value())
    }
}

/// A searchable catalogue of tools.
#[derive(Clone, Default)]
pub struct SearchIndex {
    pub(crate) vocabulary: Vocabulary,
    documents: Vec<Option<Document>>,
    servers: HashMap<Arc<str>, Range<DocumentId>>,
    /// Documents by lowercase name.
    names: HashMap<Box<str>, Vec<DocumentId>>,
    tool_count: usize,
    pub(crate) lexicon: Option<Arc<dyn Lexicon>>,
    #[cfg(feature = "embedding")]
    pub(crate) model: Option<Arc<EmbeddingModel>>,
    pub(crate) history: RequestHistory,
}

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchIndex")
            .field("tools", &self.tool_count)
            .field("servers", &self.servers.len())
            .field("terms", &self.vocabulary.len())
            .field("past_requests", &self.history.len())
            .finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// An empty index that translates requests and descriptions with `lexicon`.
    pub fn with_lexicon(lexicon: Arc<dyn Lexicon>) -> Self {
        Self { lexicon: Some(lexicon), ..Self::default() }
    }

    /// Adds semantic search with a local model. Call it while the index is empty: tools added before have no embedding.
    #[cfg(feature = "embedding")]
    #[must_use]
    pub fn with_model(mut self, model: Arc<EmbeddingModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// Number of tools.
    pub fn len(&self) -> usize {
        self.tool_count
    }

    /// Whether the index holds no tool.
    pub fn is_empty(&self) -> bool {
        self.tool_count == 0
    }

    /// Adds the tools of a server, replacing those it had.
    pub fn put(&mut self, server: &ServerText, tools: &[ToolText]) {
        self.remove(&server.id);
        let first = self.next_id();
        let analyzed_server = analyze_server(server, self.lexicon.as_deref(), &mut self.vocabulary);
        for tool in tools {
            let id = self.next_id();
            let analyzed = analyzed_server.analyze_tool(tool, self.lexicon.as_deref(), &mut self.vocabulary);
            self.push(id, server, tool, analyzed);
        }
        let end = self.next_id();
        if first < end {
            self.servers.insert(Arc::clone(&server.id), first..end);
        }
    }

    /// Records that a tool served a request, so that similar requests rank the tool higher.
    ///
    /// Keeps the newest requests per tool and [`MAX_PAST_REQUESTS`](crate::MAX_PAST_REQUESTS) in all. They survive the
    /// removal of the server and count again once it is back.
    pub fn record_use(&mut self, server: &str, key: &str, request: &str) {
        let Self { history, servers, documents, .. } = self;
        history.record(server, key, &request_terms(request), || {
            let has_key = |id: &DocumentId| {
                let at = usize::try_from(*id).ok()?;
                Some(*documents.get(at)?.as_ref()?.key == *key)
            };
            servers.get(server)?.clone().find(|id| has_key(id) == Some(true))
        });
    }

    /// Number of past requests.
    pub fn past_request_count(&self) -> usize {
        self.history.len()
    }

    /// Removes the tools of a server. Returns whether it had any.
    pub fn remove(&mut self, server: &str) -> bool {
        let Some(range) = self.servers.remove(server) else { return false };
        self.history.detach_server(server);
        let mut terms = Vec::new();
        for id in range.clone() {
            let Some(document) = self.take(id) else { continue };
            terms.extend(document.terms.iter().map(|(term, _)| *term));
            if let Some(same) = self.names.get_mut(&document.name) {
                same.retain(|other| *other != id);
                if same.is_empty() {
                    self.names.remove(&document.name);
                }
            }
        }
        terms.sort_unstable();
        terms.dedup();
        self.vocabulary.remove_postings(terms.into_iter(), range.start, range.end);
        if self.documents.len() > 2 * self.tool_count + MAX_FREE_IDS {
            self.compact();
        }
        true
    }

    pub(crate) fn document(&self, id: DocumentId) -> Option<&Document> {
        self.documents.get(usize::try_from(id).ok()?)?.as_ref()
    }

    #[cfg(feature = "embedding")]
    pub(crate) fn documents(&self) -> impl Iterator<Item = (DocumentId, &Document)> {
        (0..).zip(&self.documents).filter_map(|(id, document)| Some((id, document.as_ref()?)))
    }

    /// Upper bound (exclusive) of document numbers.
    pub(crate) fn id_bound(&self) -> usize {
        self.documents.len()
    }

    /// Tools with exactly this lowercase name.
    pub(crate) fn documents_named(&self, name: &str) -> &[DocumentId] {
        self.names.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn next_id(&self) -> DocumentId {
        DocumentId::try_from(self.documents.len()).unwrap_or(DocumentId::MAX)
    }

    fn take(&mut self, id: DocumentId) -> Option<Document> {
        let document = self.documents.get_mut(usize::try_from(id).ok()?)?.take();
        self.tool_count -= usize::from(document.is_some());
        document
    }

    fn push(&mut self, id: DocumentId, server: &ServerText, tool: &ToolText, analyzed: AnalyzedTool) {
        for (term, impact) in &analyzed.terms {
            self.vocabulary.push_posting(*term, id, *impact);
        }
        self.history.attach_tool(&server.id, &tool.key, id);
        let name: Box<str> = tool.name.to_lowercase().into();
        self.names.entry(name.clone()).or_default().push(id);
        #[cfg(feature = "embedding")]
        let embedding = self
            .model
            .as_ref()
            .and_then(|model| ToolEmbedding::new(model, server, tool, &mut self.vocabulary));
        self.documents.push(Some(Document {
            server: Arc::clone(&server.id),
            key: Arc::clone(&tool.key),
            name,
            terms: analyzed.terms.into(),
            bigrams: analyzed.bigrams.into(),
            #[cfg(feature = "embedding")]
            embedding,
        }));
        self.tool_count += 1;
    }

    /// Renumbers the documents without gaps, in the same order.
    pub(crate) fn compact(&mut self) {
        let mut next: DocumentId = 0;
        let mut new_ids = Vec::with_capacity(self.documents.len());
        for document in &self.documents {
            new_ids.push(next);
            next += DocumentId::from(document.is_some());
        }
        let end = next;
        let new_id = |old: DocumentId| {
            usize::try_from(old).ok().and_then(|old| new_ids.get(old)).copied().unwrap_or(end)
        };
        self.documents.retain(Option::is_some);
        self.documents.shrink_to_fit();
        self.vocabulary.renumber_documents(new_id);
        self.history.renumber_documents(new_id);
        for range in self.servers.values_mut() {
            *range = new_id(range.start)..new_id(range.end);
        }
        for same in self.names.values_mut() {
            same.iter_mut().for_each(|id| *id = new_id(*id));
        }
    }
}
