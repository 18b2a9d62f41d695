//! Search index of the registered tools, updated lazily: a process that never searches never indexes.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use toolyard_core::{Capability, Embedder, Param, PastRequest, SourceId, ToolSpec};

use toolyard_search::{ParamText, SearchIndex, SourceText, ToolText};

use crate::{
    embedding_client::EmbeddingClient,
    registry::{
        candidate::ToolCandidate,
        snapshot::{Snapshot, SourceEntry},
    },
};

/// Past requests kept until the next search; older ones are dropped.
const MAX_PENDING_REQUESTS: usize = 1000;

/// A search index with the changes that the next search applies to it.
#[derive(Debug)]
pub(crate) struct LazySearchIndex {
    index: Arc<RwLock<SearchIndex>>,
    pending: Mutex<Pending>,
    pub(crate) embeddings: Option<Arc<EmbeddingClient>>,
}

#[derive(Debug, Default)]
struct Pending {
    /// Sources whose tools changed; `None` before the first search, which indexes all of them.
    sources: Option<BTreeSet<SourceId>>,
    requests: Vec<PastRequest>,
}

impl LazySearchIndex {
    pub(crate) fn new(embedder: Option<Arc<dyn Embedder>>) -> Self {
        let index = if embedder.is_some() { SearchIndex::with_embeddings() } else { SearchIndex::default() };
        let index = Arc::new(RwLock::new(index));
        let client = |embedder| EmbeddingClient {
            embedder,
            index: Arc::clone(&index),
            embeds_tools: tokio::sync::Mutex::new(()),
            embeds_slowly: tokio::sync::Mutex::new(()),
            failed_at: Mutex::default(),
            slow_at: Mutex::default(),
        };
        let embeddings = embedder.map(client).map(Arc::new);
        Self { index, pending: Mutex::default(), embeddings }
    }

    /// Marks the tools of a source as changed.
    pub(crate) fn mark_changed(&self, source: &SourceId) {
        let mut pending = self.pending();
        if let Some(sources) = &mut pending.sources {
            sources.insert(source.clone());
        }
    }

    /// Adds a past request at the next search. Before the first search this is a no-op: that search loads all past requests.
    pub(crate) fn add_past_request(&self, past: &PastRequest) {
        let mut pending = self.pending();
        if pending.sources.is_some() {
            // There may never be another search, so keep only the newest.
            let surplus = (pending.requests.len() + 1).saturating_sub(MAX_PENDING_REQUESTS);
            pending.requests.drain(..surplus);
            pending.requests.push(past.clone());
        }
    }

    /// The up-to-date index. `snapshot` and `past` are evaluated after the pending changes were taken, so that no change
    /// is missed; later changes stay pending. `past` is evaluated once, before the first search.
    pub(crate) fn current(
        &self,
        snapshot: impl FnOnce() -> Arc<Snapshot>,
        past: impl FnOnce() -> Vec<PastRequest>,
    ) -> RwLockReadGuard<'_, SearchIndex> {
        if self.is_outdated() {
            let mut index = self.index.write();
            let next = Pending { sources: Some(BTreeSet::new()), requests: Vec::new() };
            let mut pending = std::mem::replace(&mut *self.pending(), next);
            if pending.sources.is_none() {
                pending.requests = past();
            }
            apply_pending(&mut index, &pending, &snapshot());
            drop(index);
            self.embeddings.iter().for_each(EmbeddingClient::start);
        }
        self.index.read()
    }

    /// The number of indexed tools; changes since the last search do not count.
    pub(crate) fn len(&self) -> usize {
        self.index.read().len()
    }

    fn is_outdated(&self) -> bool {
        let pending = self.pending();
        pending.sources.as_ref().is_none_or(|sources| !sources.is_empty()) || !pending.requests.is_empty()
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock()
    }
}

fn apply_pending(index: &mut SearchIndex, pending: &Pending, snapshot: &Snapshot) {
    match &pending.sources {
        None => snapshot.sources().iter().for_each(|entry| index_source(index, entry)),
        Some(sources) => {
            for source in sources {
                match snapshot.source(source.as_str()) {
                    Some(entry) => index_source(index, entry),
                    None => {
                        index.remove(source.as_str());
                    }
                }
            }
        }
    }
    for past in &pending.requests {
        index.record_use_of(&past.owner.as_text(), past.source.as_str(), &past.tool, &past.request);
    }
}

fn index_source(index: &mut SearchIndex, entry: &SourceEntry) {
    let source = SourceText { id: entry.source.info.id.as_str().into(), description: String::new() };
    // A tool that may not be called is not found.
    let tools = entry.tools.iter().filter(|tool| !tool.denied);
    let texts: Vec<ToolText> = tools.map(|tool| candidate_text(tool)).collect();
    index.put(&source, &texts);
}

fn candidate_text(tool: &ToolCandidate) -> ToolText {
    // Not the parameters of the candidate, which would keep them: few of the tools that are found here are ever described.
    let params = tool.spec().params();
    tool_text(Arc::clone(&tool.name), tool.spec(), &params, &tool.capabilities)
}

/// The searchable text of a tool. Public for programs that measure the search: they index the same text.
pub fn tool_text(name: Arc<str>, spec: &ToolSpec, params: &[Param], capabilities: &[Capability]) -> ToolText {
    let mut texts = Vec::new();
    add_params(params, &mut texts);
    ToolText {
        name: name.to_string(),
        key: name,
        title: spec.title.clone().unwrap_or_default(),
        description: spec.description.clone(),
        params: texts,
        capabilities: capabilities.iter().map(ToString::to_string).collect(),
    }
}

fn add_params(params: &[Param], texts: &mut Vec<ParamText>) {
    for param in params {
        let description = param.description.clone().unwrap_or_default();
        texts.push(ParamText { name: param.name.clone(), description });
        add_params(&param.fields, texts);
        if let Some(items) = &param.items {
            add_params(&items.fields, texts);
        }
    }
}
