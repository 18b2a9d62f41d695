//! The index of all tools. Adding or removing a source costs time in proportion to its own tools only.

use std::{
    collections::{HashMap, hash_map::Entry},
    ops::Range,
    sync::Arc,
};

use crate::{
    accumulator::DocumentId,
    document::{SourceText, ToolText},
    history::request_terms,
    index::{
        analyzer::{AnalyzedTool, analyze_source},
        document_terms::DocumentTerms,
        vocabulary::{Impact, TermId, Vocabulary},
    },
    owned_history::OwnedHistory,
};

/// Free document ids are reclaimed once there are more than this many plus one per tool.
const MAX_FREE_IDS: usize = 4096;

#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) source: Arc<str>,
    pub(crate) key: Arc<str>,
    /// Lowercase name; tools with the same name may be duplicates.
    pub(crate) name: Arc<str>,
    pub(crate) terms: DocumentTerms,
}

impl Document {
    /// Impact of a term on this tool.
    pub(crate) fn impact(&self, term: TermId) -> Option<f32> {
        self.terms.impact(term).map(Impact::value)
    }
}

/// A searchable catalogue of tools.
#[derive(Clone, Default)]
pub struct SearchIndex {
    pub(crate) vocabulary: Vocabulary,
    /// By id; `None` if removed.
    documents: Vec<Option<Document>>,
    /// The ids of the documents of a source.
    sources: HashMap<Arc<str>, Range<DocumentId>>,
    /// Documents by lowercase name.
    ids_by_name: HashMap<Arc<str>, NamedDocuments>,
    tool_count: usize,
    pub(crate) history: OwnedHistory,
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
        let first = self.next_id();
        let analyzed_source = analyze_source(source, &mut self.vocabulary);
        for tool in tools {
            let id = self.next_id();
            let analyzed = analyzed_source.analyze_tool(tool, &mut self.vocabulary);
            self.push_document(id, source, tool, &analyzed);
        }
        let end = self.next_id();
        if first < end {
            self.sources.insert(Arc::clone(&source.id), first..end);
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
        let Self { history, sources, documents, .. } = self;
        history.record(owner, source, key, &request_terms(request), || {
            let has_key = |id: &DocumentId| {
                let at = usize::try_from(*id).ok()?;
                Some(*documents.get(at)?.as_ref()?.key == *key)
            };
            sources.get(source)?.clone().find(|id| has_key(id) == Some(true))
        });
    }

    /// Removes the tools of a source. Returns whether it had any.
    pub fn remove(&mut self, source: &str) -> bool {
        let Some(range) = self.sources.remove(source) else { return false };
        self.history.detach_source(source);
        let mut terms: Vec<TermId> = Vec::new();
        for id in range.clone() {
            let Some(document) = self.take_document(id) else { continue };
            terms.extend(document.terms.ids());
            if let Some(named) = self.ids_by_name.get_mut(&document.name)
                && named.remove(id)
            {
                self.ids_by_name.remove(&document.name);
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

    /// Upper bound (exclusive) of document ids.
    pub(crate) fn id_bound(&self) -> usize {
        self.documents.len()
    }

    /// Tools with exactly this lowercase name.
    pub(crate) fn documents_named(&self, name: &str) -> &[DocumentId] {
        self.ids_by_name.get(name).map(NamedDocuments::ids).unwrap_or_default()
    }

    fn next_id(&self) -> DocumentId {
        DocumentId::try_from(self.documents.len()).unwrap_or(DocumentId::MAX)
    }

    fn take_document(&mut self, id: DocumentId) -> Option<Document> {
        let document = self.documents.get_mut(usize::try_from(id).ok()?)?.take();
        self.tool_count -= usize::from(document.is_some());
        document
    }

    fn push_document(
        &mut self,
        id: DocumentId,
        source: &SourceText,
        tool: &ToolText,
        analyzed: &AnalyzedTool,
    ) {
        for (term, impact) in &analyzed.terms {
            self.vocabulary.push_posting(*term, id, *impact);
        }
        self.history.attach_tool(&source.id, &tool.key, id);
        let name = lowercase_name(tool);
        match self.ids_by_name.entry(Arc::clone(&name)) {
            Entry::Vacant(vacant) => {
                vacant.insert(NamedDocuments::One(id));
            }
            Entry::Occupied(mut named) => named.get_mut().push(id),
        }
        self.documents.push(Some(Document {
            source: Arc::clone(&source.id),
            key: Arc::clone(&tool.key),
            name,
            terms: DocumentTerms::new(&analyzed.terms, &analyzed.name_terms, &analyzed.bigrams),
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
        for range in self.sources.values_mut() {
            *range = new_id(range.start)..new_id(range.end);
        }
        for named in self.ids_by_name.values_mut() {
            named.ids_mut().iter_mut().for_each(|id| *id = new_id(*id));
        }
    }
}

/// The documents of one name; most names have one.
#[derive(Debug, Clone)]
enum NamedDocuments {
    One(DocumentId),
    Many(Vec<DocumentId>),
}

impl NamedDocuments {
    fn ids(&self) -> &[DocumentId] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }

    fn ids_mut(&mut self) -> &mut [DocumentId] {
        match self {
            Self::One(id) => std::slice::from_mut(id),
            Self::Many(ids) => ids,
        }
    }

    fn push(&mut self, id: DocumentId) {
        match self {
            Self::One(first) => *self = Self::Many(vec![*first, id]),
            Self::Many(ids) => ids.push(id),
        }
    }

    /// Removes a document; returns whether none is left.
    fn remove(&mut self, id: DocumentId) -> bool {
        match self {
            Self::One(only) => *only == id,
            Self::Many(ids) => {
                ids.retain(|other| *other != id);
                ids.is_empty()
            }
        }
    }
}

/// The lowercase name of a tool, which often is its key.
fn lowercase_name(tool: &ToolText) -> Arc<str> {
    let lowercase = tool.name.to_lowercase();
    if *lowercase == *tool.key { Arc::clone(&tool.key) } else { lowercase.into() }
}
