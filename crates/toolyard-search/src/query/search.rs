//! The entry point of a search, and its hits.

use std::{collections::HashSet, sync::Arc};

use crate::{
    index::search_index::{Document, SearchIndex},
    query::{
        parsed_query::{MatchKind, Query, WeightedTerm},
        selection::SelectedTool,
    },
};

/// At least this many candidates are considered for selection.
const MIN_CANDIDATES: usize = 100;

/// What the translation of a word in a tool's name counts, relative to the word itself: one of several meanings.
const TRANSLATED_COVERAGE: f32 = 0.25;
/// Part of their weight at which concepts count if similar requests were served before, which says more.
const CONCEPT_SHARE_BESIDE_HISTORY: f32 = 0.6;
/// In larger catalogues concepts count less: many tools share each.
const LARGE_CATALOGUE_TOOLS: f32 = 1000.0;

/// A tool found by a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// [`SourceText::id`](crate::SourceText::id) of the source of the tool.
    pub source: Arc<str>,
    /// [`ToolText::key`](crate::ToolText::key) of the tool.
    pub key: Arc<str>,
    /// Relevance; comparable within one search only.
    pub score: f32,
    /// Source and key of the copies of the tool that were not listed: other tools of its name with a similar definition.
    pub duplicates: Vec<(Arc<str>, Arc<str>)>,
    /// Part of the score that comes from past requests.
    pub history_score: f32,
    /// Matched words of the request, most significant first.
    pub matches: Vec<TermMatch>,
}

/// A word of the request that matches a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct TermMatch {
    /// The word of the request.
    pub word: String,
    /// The terms of the tool that it matches.
    pub terms: Vec<Arc<str>>,
    /// How the word matches the terms.
    pub kind: MatchKind,
    /// Part of the score that comes from this word.
    pub score: f32,
}

impl SearchIndex {
    /// Like [`Self::search_of`], for the owner with the empty name.
    pub fn search(&self, request: &str, limit: usize) -> Vec<Hit> {
        self.search_of("", request, limit)
    }

    /// The tools for a request, best first. Past requests of this owner count, those of others do not.
    pub fn search_of(&self, owner: &str, request: &str, limit: usize) -> Vec<Hit> {
        self.search_parsed(Query::parse(self, owner, request), limit)
    }

    /// Like [`Self::search_steps_of`], for the owner with the empty name.
    pub fn search_steps<'a>(
        &self,
        task: &str,
        steps: impl IntoIterator<Item = &'a str>,
        limit: usize,
    ) -> Vec<Hit> {
        self.search_steps_of("", task, steps, limit)
    }

    /// The tools for a task of several steps: the hits of each step, interleaved. A step such as "save it" says little,
    /// so the terms of the whole task count too, at a lower weight. Past requests of this owner count.
    pub fn search_steps_of<'a>(
        &self,
        owner: &str,
        task: &str,
        steps: impl IntoIterator<Item = &'a str>,
        limit: usize,
    ) -> Vec<Hit> {
        let task = Query::parse(self, owner, task);
        let search = |step: &str| {
            // A step says what is to be done in the words of a plan: concepts would only blur it.
            let step = Query { concepts: Vec::new(), ..Query::parse(self, owner, step) };
            self.search_parsed(step.within_task(&task), limit)
        };
        interleave(steps.into_iter().map(search).collect(), limit)
    }

    fn search_parsed(&self, query: Query, limit: usize) -> Vec<Hit> {
        let query = self.with_concepts(query);
        let candidates = self.top_documents(&query, MIN_CANDIDATES.max(limit.saturating_mul(2)));
        let selected = self.select(&query, &candidates, limit);
        selected.iter().filter_map(|tool| self.to_hit(&query, tool)).collect()
    }

    /// Adds the concepts of a query to its terms, at a share that depends on its best tool without them.
    fn with_concepts(&self, query: Query) -> Query {
        if query.concepts.is_empty() {
            return query;
        }
        let best = self.top_documents(&query, 1);
        let best = best.first().and_then(|(id, _)| self.document(*id));
        let share = self.concept_share(&query, best);
        query.with_concepts(share)
    }

    /// Part of their weight at which concepts count: low where the request mentions the name of the best tool, and lower the
    /// more clauses it has, because concepts of several tasks do not belong together.
    fn concept_share(&self, query: &Query, best: Option<&Document>) -> f32 {
        let name_coverage = best.map_or(0.0, |best| self.name_coverage(query, best));
        let history = if query.past_uses.is_empty() { 1.0 } else { CONCEPT_SHARE_BESIDE_HISTORY };
        #[expect(
            clippy::cast_precision_loss,
            reason = "bounded by the length of a request, and shares need no precision"
        )]
        let (clauses, tools) =
            ((query.sentence_count + query.comma_count).max(1) as f32, self.len().max(1) as f32);
        history * (1.0 - name_coverage).max(0.0) * (LARGE_CATALOGUE_TOOLS / tools).min(1.0).powi(3) / clauses
    }

    /// Share of a tool's name that the request mentions, weighted by the rarity of its terms.
    pub(crate) fn name_coverage(&self, query: &Query, document: &Document) -> f32 {
        let (mut covered, mut total) = (0.0, 0.0);
        for term in &document.terms.name_terms {
            let weight = self.term_weight(*term);
            total += weight;
            let expansions = || query.terms.iter().flat_map(|query_term| &query_term.expansions);
            if expansions().any(|one| one.is_exact(*term)) {
                covered += weight;
            } else if expansions().any(|one| one.is_translation(*term)) {
                covered += weight * TRANSLATED_COVERAGE;
            }
        }
        if total > 0.0 { covered / total } else { 0.0 }
    }

    fn to_hit(&self, query: &Query, tool: &SelectedTool) -> Option<Hit> {
        let document = self.document(tool.document)?;
        let identity = |document: &Document| (Arc::clone(&document.source), Arc::clone(&document.key));
        let (source, key) = identity(document);
        let mut matches: Vec<TermMatch> = Vec::new();
        for query_term in &query.terms {
            if let Some((score, expansion)) = self.best_expansion(query_term, document) {
                let text =
                    |term: &WeightedTerm| self.vocabulary.get(term.id).map(|term| Arc::clone(&term.text));
                let terms = expansion.terms.iter().filter_map(text).collect();
                matches.push(TermMatch { word: query_term.word.clone(), terms, kind: expansion.kind, score });
            }
        }
        matches.sort_by(|one, other| other.score.total_cmp(&one.score));
        let duplicates = tool.duplicates.iter().filter_map(|id| self.document(*id)).map(identity).collect();
        Some(Hit { source, key, score: tool.score, duplicates, history_score: tool.history_score, matches })
    }
}

/// Takes the first hit of every list, then the next one of every list that is not taken yet, and so on.
fn interleave(lists: Vec<Vec<Hit>>, limit: usize) -> Vec<Hit> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut seen = HashSet::new();
    let mut hits = Vec::new();
    loop {
        let count_before = hits.len();
        for list in &mut lists {
            hits.extend(list.find(|hit| seen.insert((Arc::clone(&hit.source), Arc::clone(&hit.key)))));
        }
        if hits.len() == count_before || hits.len() >= limit {
            break;
        }
    }
    hits.truncate(limit);
    hits
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
