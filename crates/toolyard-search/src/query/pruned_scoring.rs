//! Finds the documents that can be among the best of a large catalogue without scoring all others (MaxScore, by windows of
//! documents).
//!
//! Two observations make it fast. The sums of some thousand consecutive documents stay in the cache of the processor, while those
//! of all documents do not. And once enough good documents are known, the expansions that can add most exclude most others: the
//! postings of the other expansions, often those of the most frequent terms, are not read where no document is left.
//!
//! What is found is exact: bounds have a margin for sums that are added in another order, and the caller scores what is found
//! in the order of the query.

use std::{cell::RefCell, ops::Range};

use crate::{
    accumulator::DocumentId,
    index::search_index::SearchIndex,
    query::{
        document_window::{DocumentWindow, ImpactList},
        parsed_query::{Expansion, Query, QueryTerm},
        scoring::ScoredDocument,
    },
};

/// With fewer postings, scoring every document is as fast.
const MIN_POSTINGS: usize = 20_000;
/// Scoring one document by its own terms costs about as much as reading this many postings.
const POSTINGS_PER_SCORED_DOCUMENT: usize = 256;
/// With more documents per posting left, scoring every document is faster.
const MIN_POSTINGS_PER_DOCUMENT: usize = 8;
/// By how much, relative to the sum, one more expansion can change a sum that is added up in another order. Several times the
/// precision of `f32`.
const ROUNDING_PER_EXPANSION: f32 = 1e-6;

thread_local! {
    static WINDOW: RefCell<DocumentWindow> = RefCell::default();
}

impl SearchIndex {
    /// The documents that can be among the `limit` best, with their approximate scores, in a catalogue where this is faster than
    /// scoring every document. All others score less than these best, even if `max_addition` is added to their score.
    pub(crate) fn possible_best(
        &self,
        query: &Query,
        limit: usize,
        max_addition: f32,
    ) -> Option<Vec<ScoredDocument>> {
        let expansions = query.terms.iter().flat_map(|term| &term.expansions);
        let posting_count: usize = expansions.map(|expansion| self.posting_count(expansion)).sum();
        if limit == 0 || posting_count <= MIN_POSTINGS {
            return None;
        }
        let possible = self.possible_best_by_windows(query, limit, max_addition, usize::MAX)?;
        (possible.len() * MIN_POSTINGS_PER_DOCUMENT <= posting_count).then_some(possible)
    }

    /// `None` if documents without any of the terms can be among the best.
    fn possible_best_by_windows(
        &self,
        query: &Query,
        limit: usize,
        max_addition: f32,
        max_window_documents: usize,
    ) -> Option<Vec<ScoredDocument>> {
        let mut best = BestSums::new(limit, max_addition, rounding_margin(query));
        let mut lists = QueryLists::new(self, query);
        let end = DocumentId::try_from(self.id_bound()).unwrap_or(DocumentId::MAX);
        WINDOW.with_borrow_mut(|window| {
            let window_documents = window.prepare(lists.slot_count).min(max_window_documents);
            let starts = (0..end).step_by(window_documents);
            for (start, next) in starts.clone().zip(starts.skip(1).chain([end])) {
                lists.read_window(window, &(start..next), &mut best);
                best.raise_min_score();
            }
        });
        best.finish()
    }

    /// The most that some query terms can add to the score of a document.
    pub(crate) fn max_score(&self, terms: &[QueryTerm]) -> f32 {
        terms.iter().map(|term| term.score(|id| self.max_impact(id))).sum()
    }

    /// The number of postings of an expansion.
    fn posting_count(&self, expansion: &Expansion) -> usize {
        let terms = expansion.terms.iter().filter_map(|term| self.vocabulary.get(term.id));
        terms.map(|term| term.postings.len()).sum()
    }
}

/// The factor by which sums of a query that are added in another order differ at most.
#[expect(clippy::cast_precision_loss, reason = "the number of expansions is small")]
fn rounding_margin(query: &Query) -> f32 {
    let expansions: usize =
        query.terms.iter().chain(&query.concepts).map(|term| term.expansions.len() + 1).sum();
    1.0 + (expansions + 1) as f32 * ROUNDING_PER_EXPANSION
}

/// Those of the possible best documents of a query that can be the first.
pub(crate) fn possible_first(query: &Query, possible: &[ScoredDocument]) -> Vec<ScoredDocument> {
    let highest = possible.iter().map(|(_, score)| *score).fold(0.0, f32::max);
    let min_score = highest / rounding_margin(query);
    possible.iter().copied().filter(|(_, score)| *score >= min_score).collect()
}

/// The sums of the best documents so far.
struct BestSums {
    limit: usize,
    max_addition: f32,
    rounding_margin: f32,
    documents: Vec<ScoredDocument>,
    /// Documents with a lower sum are not among the best.
    min_score: f32,
    /// With more documents, the minimum is computed again.
    max_documents: usize,
}

impl BestSums {
    fn new(limit: usize, max_addition: f32, rounding_margin: f32) -> Self {
        let documents = Vec::new();
        Self { limit, max_addition, rounding_margin, documents, min_score: 0.0, max_documents: limit }
    }

    fn offer(&mut self, document: ScoredDocument) {
        if document.1 >= self.min_score {
            self.documents.push(document);
        }
    }

    fn raise_min_score(&mut self) {
        if self.documents.len() > self.max_documents {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.documents.len() > self.limit {
            let descending = |one: &ScoredDocument, other: &ScoredDocument| other.1.total_cmp(&one.1);
            let (_, (_, score), _) = self.documents.select_nth_unstable_by(self.limit - 1, descending);
            let min_score = *score / self.rounding_margin - self.max_addition * self.rounding_margin;
            self.min_score = min_score;
            self.documents.retain(|(_, score)| *score >= min_score);
        }
        // Equal scores can keep more than the limit.
        self.max_documents = self.documents.len() + self.limit / 2;
    }

    /// `None` if documents without any of the terms can be among the best.
    fn finish(mut self) -> Option<Vec<ScoredDocument>> {
        self.prune();
        (self.max_addition <= 0.0 || self.min_score > 0.0).then_some(self.documents)
    }
}

/// The postings of a query by expansion, those that can add most first.
struct QueryLists<'a> {
    index: &'a SearchIndex,
    query: &'a Query,
    lists: Vec<BoundedList<'a>>,
    /// Query terms of several expansions, the best of which counts.
    slot_count: usize,
}

struct BoundedList<'a> {
    list: ImpactList<'a>,
    /// The most that this list and all after it can add to a score.
    max_rest: f32,
    /// The postings of this list and all after it.
    rest_postings: usize,
}

impl<'a> QueryLists<'a> {
    fn new(index: &'a SearchIndex, query: &'a Query) -> Self {
        let (mut bounded, mut slot_count) = (Vec::new(), 0);
        for (number, term) in query.terms.iter().enumerate() {
            let slot = (term.expansions.len() > 1).then_some(slot_count);
            slot_count += usize::from(slot.is_some());
            for expansion in &term.expansions {
                let max_score = expansion.score(term.weight, &|id| index.max_impact(id));
                bounded.push((
                    max_score,
                    number,
                    ImpactList::new(index, term.weight, expansion, slot),
                    expansion,
                ));
            }
        }
        bounded.retain(|(max_score, ..)| *max_score > 0.0);
        bounded.sort_by(|one, other| one.0.total_cmp(&other.0));
        let margin = rounding_margin(query);
        // By query term: the most that a list which is read later can add.
        let mut max_later = vec![0.0; query.terms.len()];
        let (mut max_rest, mut rest_postings) = (0.0, 0);
        let mut lists: Vec<BoundedList<'a>> = Vec::with_capacity(bounded.len());
        for (max_score, number, list, expansion) in bounded {
            if let Some(later) = max_later.get_mut(number) {
                max_rest += max_score - std::mem::replace(later, max_score);
            }
            rest_postings += index.posting_count(expansion);
            lists.push(BoundedList { list, max_rest: max_rest * margin, rest_postings });
        }
        lists.reverse();
        Self { index, query, lists, slot_count }
    }

    /// Adds those of a window of documents to the best that can be among them.
    fn read_window(&mut self, window: &mut DocumentWindow, range: &Range<DocumentId>, best: &mut BestSums) {
        let mut only_found = false;
        for BoundedList { list, max_rest, rest_postings } in &mut self.lists {
            if *max_rest < best.min_score {
                // No document that is in none of the lists before can be among the best.
                only_found = true;
                window.retain(best.min_score - *max_rest);
                if window.found_count() == 0 {
                    return;
                }
                let postings = rest_postings.saturating_mul(range.len()) / self.index.id_bound().max(1);
                if window.found_count().saturating_mul(POSTINGS_PER_SCORED_DOCUMENT) < postings {
                    window.drain(range.start, |id, _| {
                        if let Some(document) = self.index.document(id) {
                            best.offer((id, self.query.score(document)));
                        }
                    });
                    return;
                }
            }
            window.add(list, range, only_found);
        }
        window.drain(range.start, |id, sum| best.offer((id, sum)));
    }
}

#[cfg(test)]
#[path = "pruned_scoring_tests.rs"]
mod tests;
