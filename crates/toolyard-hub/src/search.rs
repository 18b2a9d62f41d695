//! Tool search on the hub: from the user's words to callable tools.

use std::{collections::HashSet, sync::Arc};

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
    /// Whether a call without a source can reach it; otherwise the call must name the source.
    pub reachable_by_name: bool,
    /// Tools of the same name with a similar definition on other sources.
    pub duplicates: Vec<Arc<ToolCandidate>>,
    /// Matched words of the request, most significant first.
    pub matched: Vec<TermMatch>,
    /// The part of the score that comes from past requests.
    pub history_score: f32,
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
        resolve_hits(&self.snapshot(), hits)
    }

    /// The tools for a task of several steps: the results of each step, interleaved.
    pub fn search_steps(&self, task: &str, steps: &[&str], limit: usize) -> Vec<ToolMatch> {
        let hits = self.index().search_steps(
            task,
            steps.iter().copied().take(MAX_SEARCH_STEPS),
            limit.min(MAX_SEARCH_RESULTS),
        );
        resolve_hits(&self.snapshot(), hits)
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
        let reachable_by_name = is_preferred(&tool) && names.insert(Arc::clone(&tool.name));
        matches.push(ToolMatch {
            tool,
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
