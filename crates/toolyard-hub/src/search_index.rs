//! Search index of the registered tools, updated lazily: a process that never searches never indexes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use toolyard_core::{Param, PastRequest, SourceId};

use toolyard_search::{ParamText, SearchIndex, ServerText, ToolText};

use crate::registry::{
    candidate::ToolCandidate,
    snapshot::{Snapshot, SourceEntry},
};

/// Answered requests kept until the next search; older ones are dropped.
const MAX_PENDING_REQUESTS: usize = 1000;

/// A search index with the changes that are not applied to it yet.
#[derive(Debug)]
pub(crate) struct LiveIndex {
    index: RwLock<SearchIndex>,
    pending: Mutex<Pending>,
}

/// Changes since the last search.
#[derive(Debug, Default)]
struct Pending {
    /// Sources whose tools changed; `None` before the first search, which indexes all of them.
    sources: Option<Vec<SourceId>>,
    /// Answered requests.
    requests: Vec<PastRequest>,
}

impl LiveIndex {
    /// Wraps an empty index.
    pub(crate) fn new(empty: SearchIndex) -> Self {
        Self { index: RwLock::new(empty), pending: Mutex::default() }
    }

    /// Marks a source as changed.
    pub(crate) fn changed(&self, source: &SourceId) {
        let mut pending = self.pending();
        if let Some(sources) = &mut pending.sources
            && !sources.contains(source)
        {
            sources.push(source.clone());
        }
    }

    /// Notes a request that a tool served. Before the first search this is a no-op: that search loads all past requests.
    pub(crate) fn remember(&self, past: &PastRequest) {
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
        if self.is_behind() {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            let next = Pending { sources: Some(Vec::new()), requests: Vec::new() };
            let mut pending = std::mem::replace(&mut *self.pending(), next);
            if pending.sources.is_none() {
                pending.requests = past();
            }
            take_over(&mut index, &pending, &snapshot());
        }
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_behind(&self) -> bool {
        let pending = self.pending();
        pending.sources.as_ref().is_none_or(|sources| !sources.is_empty()) || !pending.requests.is_empty()
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take_over(index: &mut SearchIndex, pending: &Pending, snapshot: &Snapshot) {
    match &pending.sources {
        None => snapshot.sources().iter().for_each(|entry| put(index, entry)),
        Some(sources) => {
            for source in sources {
                match snapshot.source(source.as_str()) {
                    Some(entry) => put(index, entry),
                    None => {
                        index.remove(source.as_str());
                    }
                }
            }
        }
    }
    for past in &pending.requests {
        index.record_use(past.source.as_str(), &past.tool, &past.request);
    }
}

fn put(index: &mut SearchIndex, entry: &SourceEntry) {
    let server = ServerText { id: entry.source.info.id.as_str().into(), description: String::new() };
    let texts: Vec<ToolText> = entry.tools.iter().map(|tool| text_of(tool)).collect();
    index.put(&server, &texts);
}

/// Searchable text of a tool.
fn text_of(tool: &ToolCandidate) -> ToolText {
    let spec = tool.spec();
    let mut params = Vec::new();
    add_params(tool.params(), &mut params);
    ToolText {
        key: Arc::clone(&tool.name),
        name: tool.name.to_string(),
        title: spec.title.clone().unwrap_or_default(),
        description: spec.description.clone(),
        params,
        capabilities: tool.capabilities.iter().map(ToString::to_string).collect(),
    }
}

fn add_params(params: &[Param], to: &mut Vec<ParamText>) {
    for param in params {
        let description = param.description.clone().unwrap_or_default();
        to.push(ParamText { name: param.name.clone(), description });
        add_params(&param.fields, to);
        if let Some(items) = &param.items {
            add_params(&items.fields, to);
        }
    }
}
