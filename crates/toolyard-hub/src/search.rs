//! Tool search on the hub: from the text of a request to callable tools.

use std::{collections::HashSet, sync::Arc};

use crate::{
    hub::ToolHub,
    registry::{candidate::ToolCandidate, snapshot::Snapshot},
};
use toolyard_search::{Hit, TermMatch};

/// Upper bound on `limit`.
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
    /// Whether a call by name alone reaches it; otherwise the call must name the source.
    pub by_name: bool,
    /// The same tool on other sources.
    pub same: Vec<Arc<ToolCandidate>>,
    /// Matched words of the request, most significant first.
    pub matched: Vec<TermMatch>,
    /// Share of the score that comes from past requests.
    pub history: f32,
}

impl ToolHub {
    /// Waits until past requests are loaded.
    pub async fn wait_until_searchable(&self) {
        if let Some(past) = self.past_requests() {
            past.ready().await;
        }
    }

    /// The tools for a request, best first. Starts no server.
    pub fn search(&self, request: &str, limit: usize) -> Vec<ToolMatch> {
        let hits = self.index().search(request, limit.min(MAX_SEARCH_RESULTS));
        found(&self.snapshot(), hits)
    }

    /// The tools for a task of several steps: the results of each step, interleaved.
    pub fn search_steps(&self, task: &str, steps: &[&str], limit: usize) -> Vec<ToolMatch> {
        let hits = self.index().search_steps(
            task,
            steps.iter().copied().take(MAX_SEARCH_STEPS),
            limit.min(MAX_SEARCH_RESULTS),
        );
        found(&self.snapshot(), hits)
    }
}

/// Resolves hits to registered tools; a tool that was removed meanwhile is skipped.
fn found(snapshot: &Snapshot, hits: Vec<Hit>) -> Vec<ToolMatch> {
    let mut names = HashSet::new();
    let mut all = Vec::with_capacity(hits.len());
    for hit in hits {
        let Some(tool) = snapshot.find_in(&hit.key, &hit.server) else { continue };
        let used = |tool: &Arc<ToolCandidate>| {
            snapshot
                .find(&tool.name)
                .is_some_and(|found| found.used.iter().any(|used| Arc::ptr_eq(used, tool)))
        };
        let same =
            hit.duplicates.iter().filter_map(|(server, key)| snapshot.find_in(key, server)).map(Arc::clone);
        let mut same: Vec<Arc<ToolCandidate>> = same.collect();
        let mut tool = Arc::clone(tool);
        // Identical tools are listed once, as the one that a call by name reaches. Different tools of one name are all listed.
        if !used(&tool)
            && let Some(preferred) = same.iter_mut().find(|other| used(other) && is_same_tool(&tool, other))
        {
            std::mem::swap(&mut tool, preferred);
        }
        let by_name = used(&tool) && names.insert(Arc::clone(&tool.name));
        all.push(ToolMatch {
            tool,
            score: hit.score,
            by_name,
            same,
            matched: hit.matches,
            history: hit.history_score,
        });
    }
    all
}

/// Whether two tools of one name have the same definition or are equivalent.
fn is_same_tool(one: &ToolCandidate, other: &ToolCandidate) -> bool {
    let (said, same) = (one.spec(), other.spec());
    one.equivalent_to(other)
        || (said.description == same.description && said.input_schema == same.input_schema)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
