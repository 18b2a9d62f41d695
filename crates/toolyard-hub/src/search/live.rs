//! The index of a hub's tools, kept up to date when it is asked: a process that never searches never indexes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use toolyard_core::{Param, PastRequest, SourceId};

use super::{
    SearchIndex,
    document::{ParamText, ServerText, ToolText},
};
use crate::{
    candidate::ToolCandidate,
    registry::{Snapshot, SourceEntry},
};

/// So many answered requests wait to be taken over.
const MOST_PENDING: usize = 1000;

/// An index that knows what it has yet to take over.
#[derive(Debug)]
pub(crate) struct LiveIndex {
    index: RwLock<SearchIndex>,
    pending: Mutex<Pending>,
}

/// What changed since the index was last asked.
#[derive(Debug, Default)]
struct Pending {
    /// The sources whose tools changed; none before the index was first asked, when all are new to it.
    sources: Option<Vec<SourceId>>,
    /// Requests that were answered.
    requests: Vec<PastRequest>,
}

impl LiveIndex {
    /// Over an index that is still empty.
    pub(crate) fn new(empty: SearchIndex) -> Self {
        Self { index: RwLock::new(empty), pending: Mutex::default() }
    }

    /// Hears that the tools of a source changed.
    pub(crate) fn changed(&self, source: &SourceId) {
        let mut pending = self.pending();
        if let Some(sources) = &mut pending.sources
            && !sources.contains(source)
        {
            sources.push(source.clone());
        }
    }

    /// Hears that a tool answered a request. Before the index was first asked there is nothing to remember: it will be told.
    pub(crate) fn remember(&self, past: &PastRequest) {
        let mut pending = self.pending();
        if pending.sources.is_some() {
            // Nobody may search again: the newest are enough.
            let surplus = (pending.requests.len() + 1).saturating_sub(MOST_PENDING);
            pending.requests.drain(..surplus);
            pending.requests.push(past.clone());
        }
    }

    /// The index as of now. `snapshot` and `past` are asked for after it is settled what must be taken over, so that no
    /// change is missed: what changes meanwhile is pending again. `past` is asked for once, before anything is searched.
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
        index.remember(past.source.as_str(), &past.tool, &past.request);
    }
}

fn put(index: &mut SearchIndex, entry: &SourceEntry) {
    let server = ServerText { id: entry.source.info.id.as_str().into(), description: String::new() };
    let texts: Vec<ToolText> = entry.tools.iter().map(|tool| text_of(tool)).collect();
    index.put(&server, &texts);
}

/// The words of a registered tool.
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
