//! Tool search on the hub: from the user's words to callable tools.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use tokio::time::Instant;
use toolyard_core::{
    DataOwner,
    telemetry::{Operation, OperationKind},
};

use crate::{
    hub::ToolHub,
    registry::{candidate::ToolCandidate, snapshot::Snapshot},
};
use toolyard_search::{Hit, TermMatch};

/// Upper bound on the `limit` of a search.
const MAX_SEARCH_RESULTS: usize = 1000;
/// Steps of a task beyond this number are ignored.
const MAX_SEARCH_STEPS: usize = 50;

/// A tool found by a search.
#[derive(Debug, Clone)]
pub struct ToolMatch {
    /// The tool.
    pub tool: Arc<ToolCandidate>,
    /// Relevance; comparable within one search only.
    pub score: f32,
    /// The name by which a call reaches it.
    pub callable_name: Arc<str>,
    /// Whether that is its bare name; otherwise the call names the source.
    pub reachable_by_name: bool,
    /// Tools of the same name with a similar definition on other sources.
    pub duplicates: Vec<Arc<ToolCandidate>>,
    /// Matched words of the request, most significant first.
    pub matched: Vec<TermMatch>,
    /// The part of the score that comes from past requests.
    pub history_score: f32,
}

impl ToolHub {
    /// Waits until past requests are loaded and, for a moment, for the embeddings of requests that are about to be searched for.
    pub async fn wait_until_searchable(&self, requests: &[&str]) {
        if let Some(past) = self.past_requests() {
            past.ready().await;
        }
        if let Some(embeddings) = &self.search.embeddings {
            embeddings.embed_requests(requests).await;
        }
    }

    /// Indexes all tools now, which the first search does otherwise. Call it after [`Self::wait_until_searchable`].
    pub fn prepare_search(&self) {
        drop(self.index());
    }

    /// Like [`Self::search_for`], for the operator.
    pub fn search(&self, request: &str, limit: usize) -> Vec<ToolMatch> {
        self.search_for(DataOwner::Operator, request, limit)
    }

    /// The tools for a request, best first. Of past requests, those of this owner count. Starts no server.
    pub fn search_for(&self, owner: DataOwner, request: &str, limit: usize) -> Vec<ToolMatch> {
        self.counted_search(|| {
            let hits = self.index().search_of(&owner.as_text(), request, limit.min(MAX_SEARCH_RESULTS));
            resolve_hits(&self.snapshot(), hits)
        })
    }

    /// Like [`Self::search_steps_for`], for the operator.
    pub fn search_steps(&self, task: &str, steps: &[&str], limit: usize) -> Vec<ToolMatch> {
        self.search_steps_for(DataOwner::Operator, task, steps, limit)
    }

    /// The tools for a task of several steps: the results of each step, interleaved. Of past requests, those of this owner
    /// count.
    pub fn search_steps_for(
        &self,
        owner: DataOwner,
        task: &str,
        steps: &[&str],
        limit: usize,
    ) -> Vec<ToolMatch> {
        self.counted_search(|| {
            let hits = self.index().search_steps_of(
                &owner.as_text(),
                task,
                steps.iter().copied().take(MAX_SEARCH_STEPS),
                limit.min(MAX_SEARCH_RESULTS),
            );
            resolve_hits(&self.snapshot(), hits)
        })
    }

    /// Reports a search to telemetry. It is part of a request, so that it has no span of its own.
    fn counted_search(&self, search: impl FnOnce() -> Vec<ToolMatch>) -> Vec<ToolMatch> {
        let Some(telemetry) = self.telemetry() else { return search() };
        let (started_at, started) = (SystemTime::now(), Instant::now());
        let matches = search();
        telemetry.record(Box::new(Operation {
            kind: OperationKind::ToolSearch { found: matches.len() },
            span: None,
            started_at,
            duration: started.elapsed(),
            error_type: None,
        }));
        matches
    }
}

/// Resolves hits to registered tools; a tool that was removed meanwhile is skipped.
fn resolve_hits(snapshot: &Snapshot, hits: Vec<Hit>) -> Vec<ToolMatch> {
    let mut names = HashSet::new();
    let mut matches = Vec::with_capacity(hits.len());
    for hit in hits {
        let Some(tool) = snapshot.find_in(&hit.key, &hit.source) else { continue };
        let is_preferred = |tool: &Arc<ToolCandidate>| {
            snapshot
                .find(&tool.name)
                .filter(|found| !found.is_contested)
                .is_some_and(|found| found.equivalents.iter().any(|known| Arc::ptr_eq(known, tool)))
        };
        let duplicates =
            hit.duplicates.iter().filter_map(|(source, key)| snapshot.find_in(key, source)).map(Arc::clone);
        let mut duplicates: Vec<Arc<ToolCandidate>> = duplicates.collect();
        let mut tool = Arc::clone(tool);
        // Identical tools are listed once, as the one that a call by name reaches. Different tools of one name are all listed.
        if !is_preferred(&tool)
            && let Some(preferred) =
                duplicates.iter_mut().find(|other| is_preferred(other) && is_same_tool(&tool, other))
        {
            std::mem::swap(&mut tool, preferred);
        }
        // The search stops at its limit, before it has found all copies of the last hit.
        for other in snapshot.contenders(&tool.name, None) {
            let is_known = |known: &Arc<ToolCandidate>| Arc::ptr_eq(known, &other);
            if !is_known(&tool) && !duplicates.iter().any(is_known) && is_same_tool(&tool, &other) {
                duplicates.push(other);
            }
        }
        let reachable_by_name = is_preferred(&tool) && names.insert(Arc::clone(&tool.name));
        // A tool that no name reaches cannot be called.
        let Some(callable_name) = snapshot.callable_name(&tool, None) else { continue };
        matches.push(ToolMatch {
            tool,
            callable_name,
            score: hit.score,
            reachable_by_name,
            duplicates,
            matched: hit.matches,
            history_score: hit.history_score,
        });
    }
    matches
}

/// Whether two tools of one name have the same definition or are equivalent.
fn is_same_tool(one: &ToolCandidate, other: &ToolCandidate) -> bool {
    let (spec, other_spec) = (one.spec(), other.spec());
    one.equivalent_to(other)
        || (spec.description == other_spec.description && spec.input_schema == other_spec.input_schema)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
