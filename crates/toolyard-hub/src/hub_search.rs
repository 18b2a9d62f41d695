//! Searching the hub's tools: from the words of a request to tools that can be called.

use std::{collections::HashSet, sync::Arc};

use crate::{
    candidate::ToolCandidate,
    hub::ToolHub,
    registry::Snapshot,
    search::{Hit, Matched},
};

/// More tools are not looked for, whatever is asked.
const MOST: usize = 1000;
/// More steps of a task are not searched for.
const MOST_STEPS: usize = 50;

/// A tool that a request is about.
#[derive(Debug, Clone)]
pub struct FoundTool {
    /// The tool.
    pub tool: Arc<ToolCandidate>,
    /// How well it fits; only comparable within one search.
    pub score: f32,
    /// Whether a call by its name alone reaches it; otherwise another source has the name, and this one must be named.
    pub by_name: bool,
    /// The same tool on other sources.
    pub same: Vec<Arc<ToolCandidate>>,
    /// The words of the request that led to it, the telling ones first.
    pub matched: Vec<Matched>,
    /// What past requests like this one add to the score.
    pub history: f32,
}

impl ToolHub {
    /// Ends once everything is known that a search takes into account.
    pub async fn ready_to_search(&self) {
        if let Some(past) = self.past_requests() {
            past.ready().await;
        }
    }

    /// The tools that a request is about, the best first. No server is started for it.
    pub fn search(&self, request: &str, limit: usize) -> Vec<FoundTool> {
        let hits = self.index().search(request, limit.min(MOST));
        found(&self.snapshot(), hits)
    }

    /// The tools for a task of several steps: what each step finds, in turn.
    pub fn search_steps(&self, task: &str, steps: &[&str], limit: usize) -> Vec<FoundTool> {
        let hits = self.index().search_steps(task, steps.iter().copied().take(MOST_STEPS), limit.min(MOST));
        found(&self.snapshot(), hits)
    }
}

/// The tools behind the hits; one that is gone by now is left out.
fn found(snapshot: &Snapshot, hits: Vec<Hit>) -> Vec<FoundTool> {
    let mut names = HashSet::new();
    let mut all = Vec::with_capacity(hits.len());
    for hit in hits {
        let Some(tool) = snapshot.find_in(&hit.key, &hit.server) else { continue };
        let used = |tool: &Arc<ToolCandidate>| {
            snapshot
                .find(&tool.name)
                .is_some_and(|found| found.used.iter().any(|used| Arc::ptr_eq(used, tool)))
        };
        let same = hit.same.iter().filter_map(|(server, key)| snapshot.find_in(key, server)).map(Arc::clone);
        let mut same: Vec<Arc<ToolCandidate>> = same.collect();
        let mut tool = Arc::clone(tool);
        // Of copies, the one that a call by name reaches stands for all. Tools that only share a name stay what they are.
        if !used(&tool)
            && let Some(preferred) = same.iter_mut().find(|other| used(other) && are_copies(&tool, other))
        {
            std::mem::swap(&mut tool, preferred);
        }
        let by_name = used(&tool) && names.insert(Arc::clone(&tool.name));
        all.push(FoundTool {
            tool,
            score: hit.score,
            by_name,
            same,
            matched: hit.matched,
            history: hit.history,
        });
    }
    all
}

/// Whether two tools of one name say and take the same, or the operator or trust makes them equals.
fn are_copies(one: &ToolCandidate, other: &ToolCandidate) -> bool {
    let (said, same) = (one.spec(), other.spec());
    one.equivalent_to(other)
        || (said.description == same.description && said.input_schema == same.input_schema)
}

#[cfg(test)]
#[path = "hub_search_tests.rs"]
mod tests;
