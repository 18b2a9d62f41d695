//! The index of all tools. Adding a source costs time in proportion to its own tools; removing one also moves the postings of
//! later tools with the same terms.

use std::{collections::HashMap, ops::Range, sync::Arc};

use crate::{
    accumulator::DocumentId,
    document::{SourceText, ToolText},
    history::request_terms,
    index::{
        analyzer::{ToolTerms, analyze_source},
        vocabulary::{TermId, Vocabulary},
    },
    owned_history::OwnedHistory,
    query::semantic::embedded_part,
};

/// Free document ids are reclaimed once there are more than this many plus one per tool.
const MAX_FREE_IDS: usize = 4096;

#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) source: Arc<str>,
    pub(crate) key: Arc<str>,
    /// Lowercase name; tools with the same name may be duplicates.
    pub(crate) name: Arc<str>,
    pub(crate) terms: ToolTerms,
    /// The text by which its embedding is known; `None` without semantic search.
    pub(crate) embedded_text: Option<String>,
}

/// The documents of a source.
#[derive(Debug, Clone)]
struct SourceDocuments {
    ids: Range<DocumentId>,
    by_key: HashMap<Arc<str>, DocumentId>,
}

/// A searchable catalogue of tools.
#[derive(Clone, Default)]
pub struct SearchIndex {
    pub(crate) vocabulary: Vocabulary,
    /// By id; `None` if removed.
    pub(crate) documents: Vec<Option<Document>>,
    sources: HashMap<Arc<str>, SourceDocuments>,
    /// Documents by lowercase name.
    ids_by_name: HashMap<Arc<str>, Vec<DocumentId>>,
    tool_count: usize,
    pub(crate) history: OwnedHistory,
    /// By text, of unit length; `None` without semantic search.
    pub(crate) embeddings: Option<HashMap<String, Vec<f32>>>,
    /// False once all tools were found to have embeddings.
    pub(crate) may_lack_embeddings: bool,
}

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchIndex")
            .field("tools", &self.tool_count)
            .field("sources", &self.sources.len())
            .field("terms", &self.vocabulary.len())
            .field("past_requests", &self.history.len())
            .finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// Number of tools.
    pub fn len(&self) -> usize {
        self.tool_count
    }

    /// Whether the index has no tools.
    pub fn is_empty(&self) -> bool {
        self.tool_count == 0
    }

    /// Adds the tools of a source, replacing those it had.
    pub fn put(&mut self, source: &SourceText, tools: &[ToolText]) {
        self.remove(&source.id);
        self.may_lack_embeddings = self.embeddings.is_some();
        let analyzed_source = analyze_source(source, &mut self.vocabulary);
        for tool in tools {
            let terms = analyzed_source.analyze_tool(tool, &mut self.vocabulary);
            self.push_document(Document {
                source: Arc::clone(&source.id),
                key: Arc::clone(&tool.key),
                name: lowercase_name(tool),
                terms,
                embedded_text: self.embeddings.as_ref().map(|_| embedded_text(&source.id, tool)),
            });
        }
    }

    /// Like [`Self::record_use_of`], for the owner with the empty name.
    pub fn record_use(&mut self, source: &str, key: &str, request: &str) {
        self.record_use_of("", source, key, request);
    }

    /// Records that a tool served a request of this owner, so that similar requests of the same owner rank the tool higher.
    ///
    /// Keeps the newest requests per tool and [`MAX_PAST_REQUESTS`](crate::MAX_PAST_REQUESTS) in all. They survive the
    /// removal of the source and count again once it is back.
    pub fn record_use_of(&mut self, owner: &str, source: &str, key: &str, request: &str) {
        self.history.record(owner, source, key, &request_terms(request));
    }

    /// Removes the tools of a source. Returns whether it had any.
    pub fn remove(&mut self, source: &str) -> bool {
        let Some(SourceDocuments { ids, .. }) = self.sources.remove(source) else { return false };
        let mut terms: Vec<TermId> = Vec::new();
        for id in ids.clone() {
            let Some(document) = self.take_document(id) else { continue };
            terms.extend(document.terms.ids());
            if let Some(named) = self.ids_by_name.get_mut(&document.name) {
                named.retain(|other| *other != id);
                if named.is_empty() {
                    self.ids_by_name.remove(&document.name);
                }
            }
        }
        terms.sort_unstable();
        terms.dedup();
        self.vocabulary.remove_postings(&terms, &ids);
        if self.documents.len() > 2 * self.tool_count + MAX_FREE_IDS {
            self.compact();
        }
        true
    }

    pub(crate) fn document(&self, id: DocumentId) -> Option<&Document> {
        self.documents.get(usize::try_from(id).ok()?)?.as_ref()
    }

    /// The tool of a source with this key.
    pub(crate) fn find_document(&self, source: &str, key: &str) -> Option<DocumentId> {
        self.sources.get(source)?.by_key.get(key).copied()
    }

    /// Upper bound (exclusive) of document ids.
    pub(crate) fn id_bound(&self) -> usize {
        self.documents.len()
    }

    /// Tools with exactly this lowercase name.
    pub(crate) fn documents_named(&self, name: &str) -> &[DocumentId] {
        self.ids_by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn take_document(&mut self, id: DocumentId) -> Option<Document> {
        let document = self.documents.get_mut(usize::try_from(id).ok()?)?.take();
        self.tool_count -= usize::from(document.is_some());
        document
    }

    fn push_document(&mut self, document: Document) {
        let id = DocumentId::try_from(self.documents.len()).unwrap_or(DocumentId::MAX);
        self.vocabulary.push_postings(id, &document.terms.impacts);
        self.ids_by_name.entry(Arc::clone(&document.name)).or_default().push(id);
        let of_source = self
            .sources
            .entry(Arc::clone(&document.source))
            .or_insert_with(|| SourceDocuments { ids: id..id, by_key: HashMap::new() });
        of_source.ids.end = id.saturating_add(1);
        of_source.by_key.insert(Arc::clone(&document.key), id);
        self.documents.push(Some(document));
        self.tool_count += 1;
    }

    /// Adds all documents again, so that their ids have no gaps.
    pub(crate) fn compact(&mut self) {
        let documents = std::mem::take(&mut self.documents);
        self.vocabulary.clear_postings();
        self.sources.clear();
        self.ids_by_name.clear();
        self.tool_count = 0;
        documents.into_iter().flatten().for_each(|document| self.push_document(document));
    }
}

/// The text of a tool that is embedded. Parameters are left out: they would make all tools similar ("the id of the …").
fn embedded_text(source: &str, tool: &ToolText) -> String {
    let text = format!("{source}: {}. {}", tool.name, tool.description).replace(['_', '-'], " ");
    embedded_part(&text).to_owned()
}

/// The lowercase name of a tool, which often is its key.
fn lowercase_name(tool: &ToolText) -> Arc<str> {
    let lowercase = tool.name.to_lowercase();
    if *lowercase == *tool.key { Arc::clone(&tool.key) } else { lowercase.into() }
}
