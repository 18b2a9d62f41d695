//! Lexical scoring: sums the impacts of the query terms per tool and keeps the best.

use std::{cell::RefCell, cmp::Ordering};

use crate::{
    accumulator::{Accumulator, DocumentId},
    index::{
        search_index::{Document, SearchIndex},
        vocabulary::{Impact, Term, TermId},
    },
    query::parsed_query::{Query, QueryTerm},
};

/// Exponent of the inverse document frequency.
const IDF_EXPONENT: f32 = 0.784;
/// Weight of [`Term::noise_penalty`].
const NOISE_WEIGHT: f32 = 1.1;

/// Added to the share of the tools that have a concept, so that a rare concept does not outweigh the words of a request.
const MIN_CONCEPT_FREQUENCY: f32 = 0.02;

/// With more postings than this, it pays to find out which need not be read.
const MAX_EXHAUSTIVE_POSTINGS: usize = 20_000;
/// Scoring one document costs about as much as reading this many postings.
const POSTINGS_PER_SCORED_DOCUMENT: usize = 64;
/// Sums that are added in another order may differ by this factor, and more.
const ROUNDING_MARGIN: f32 = 1.0001;

/// Sums that are compared to find out which documents cannot be among the best.
const MAX_COMPARED_SUMS: usize = 8192;

/// A document and its score.
pub(crate) type ScoredDocument = (DocumentId, f32);

thread_local! {
    static BUFFERS: RefCell<ScoringBuffers> = RefCell::default();
}

#[derive(Default)]
struct ScoringBuffers {
    /// Sums over all query terms.
    total: Accumulator,
    /// The best expansion of one query term.
    best: Accumulator,
    /// Sums over the terms of one expansion.
    expansion: Accumulator,
}

/// A query term, and how much it can add to the score of a document.
struct BoundedTerm<'a> {
    term: &'a QueryTerm,
    max_score: f32,
    posting_count: usize,
}

/// No document with a lower sum is among the best `limit`, if no sum grows any more. Compares the documents that were found first,
/// which are those of the terms that count most: the best of these are no better than the best of all.
fn min_score_of_best(totals: &Accumulator, limit: usize) -> f32 {
    let mut scores: Vec<f32> =
        totals.iter().take(limit.max(MAX_COMPARED_SUMS)).map(|(_, score)| score).collect();
    if scores.len() <= limit {
        return 0.0;
    }
    let (_, score, _) = scores.select_nth_unstable_by(limit - 1, |one, other| other.total_cmp(one));
    *score / ROUNDING_MARGIN
}

impl SearchIndex {
    /// Weight of a term: its inverse document frequency, lowered for filler words.
    pub(crate) fn term_weight(&self, term: TermId) -> f32 {
        self.vocabulary.get(term).map_or(0.0, |term| self.weight_of(term))
    }

    #[expect(clippy::cast_precision_loss, reason = "only the logarithm is used")]
    fn weight_of(&self, term: &Term) -> f32 {
        let (tools, with_term) = (self.len() as f32, term.postings.len() as f32);
        let frequency = with_term + 0.5 + if term.is_concept { MIN_CONCEPT_FREQUENCY * tools } else { 0.0 };
        let idf = (1.0 + (tools - with_term + 0.5).max(0.0) / frequency).ln();
        (idf.powf(IDF_EXPONENT) + NOISE_WEIGHT * term.noise_penalty).max(0.0)
    }

    /// The `limit` best documents by the sum over all query terms.
    pub(crate) fn top_documents(&self, query: &Query, limit: usize) -> Vec<ScoredDocument> {
        BUFFERS.with_borrow_mut(|buffers| {
            buffers.total.reserve(self.id_bound());
            if limit > 0 && self.posting_count(&query.terms) > MAX_EXHAUSTIVE_POSTINGS {
                return self.top_documents_pruned(query, limit, buffers);
            }
            self.top_documents_of_all(query, limit, buffers)
        })
    }

    /// The best of all documents in which a query term occurs.
    fn top_documents_of_all(
        &self,
        query: &Query,
        limit: usize,
        buffers: &mut ScoringBuffers,
    ) -> Vec<ScoredDocument> {
        for term in &query.terms {
            self.add_query_term(term, buffers);
        }
        let mut top = TopDocuments { index: self, limit, threshold: 0.0, entries: Vec::new() };
        buffers.total.drain(|document, score| top.offer((document, score)));
        top.finish()
    }

    /// The same documents with the same scores, without reading the postings of terms that can no longer change which documents
    /// are the best: the terms that can add most are read first, and documents whose sum so far is too low for what the
    /// others can add are left out.
    fn top_documents_pruned(
        &self,
        query: &Query,
        limit: usize,
        buffers: &mut ScoringBuffers,
    ) -> Vec<ScoredDocument> {
        let mut terms: Vec<BoundedTerm<'_>> = query.terms.iter().map(|term| self.bounded(term)).collect();
        terms.sort_by(|one, other| other.max_score.total_cmp(&one.max_score));
        let mut candidates = None;
        for (at, term) in terms.iter().enumerate() {
            let rest = terms.get(at..).unwrap_or_default();
            candidates = self.candidates_before(rest, limit, &buffers.total);
            if candidates.is_some() {
                break;
            }
            self.add_query_term(term.term, buffers);
        }
        let candidates = candidates.unwrap_or_else(|| {
            let min_score = min_score_of_best(&buffers.total, limit);
            buffers
                .total
                .iter()
                .filter(|(_, score)| *score >= min_score)
                .map(|(document, _)| document)
                .collect()
        });
        buffers.total.drain(|_, _| {});
        if candidates.len().saturating_mul(POSTINGS_PER_SCORED_DOCUMENT) > self.posting_count(&query.terms) {
            // Too many documents are equally good.
            return self.top_documents_of_all(query, limit, buffers);
        }
        // The sums so far were added in another order, and some terms are missing.
        let mut top = TopDocuments { index: self, limit, threshold: 0.0, entries: Vec::new() };
        for id in candidates {
            if let Some(document) = self.document(id) {
                top.offer((id, self.score(query, document)));
            }
        }
        top.finish()
    }

    /// The documents that can be among the best, if scoring these is cheaper than to read the postings of the terms that are
    /// left. `totals` has the sums of all other terms.
    fn candidates_before(
        &self,
        rest: &[BoundedTerm<'_>],
        limit: usize,
        totals: &Accumulator,
    ) -> Option<Vec<DocumentId>> {
        let postings: usize = rest.iter().map(|term| term.posting_count).sum();
        if totals.len() < limit || postings < limit * POSTINGS_PER_SCORED_DOCUMENT {
            return None;
        }
        let max_rest: f32 = rest.iter().map(|term| term.max_score).sum();
        let min_score = min_score_of_best(totals, limit) - max_rest * ROUNDING_MARGIN;
        // A document without any of the other terms could be among the best.
        if min_score <= 0.0 {
            return None;
        }
        let max_candidates = postings / POSTINGS_PER_SCORED_DOCUMENT;
        let possible = totals.iter().filter(|(_, score)| *score >= min_score).map(|(document, _)| document);
        let mut candidates: Vec<DocumentId> = possible.take(max_candidates + 1).collect();
        candidates.sort_unstable();
        candidates.dedup();
        (candidates.len() <= max_candidates).then_some(candidates)
    }

    /// The number of postings of all expansions.
    fn posting_count<'a>(&self, terms: impl IntoIterator<Item = &'a QueryTerm>) -> usize {
        let expansions = terms.into_iter().flat_map(|term| &term.expansions);
        let terms = expansions.flat_map(|expansion| &expansion.terms);
        terms.filter_map(|term| self.vocabulary.get(*term)).map(|term| term.postings.len()).sum()
    }

    fn bounded<'a>(&self, query_term: &'a QueryTerm) -> BoundedTerm<'a> {
        let max_impact = |term: TermId| self.vocabulary.get(term).map(|term| term.postings.max_impact());
        let max_score = self.query_term_score(query_term, max_impact);
        BoundedTerm { term: query_term, max_score, posting_count: self.posting_count([query_term]) }
    }

    /// The score of a document, added up in the same order as by [`Self::top_documents_of_all`].
    fn score(&self, query: &Query, document: &Document) -> f32 {
        let scores =
            query.terms.iter().map(|term| self.query_term_score(term, |term| document.terms.impact(term)));
        scores.fold(0.0, |sum, score| sum + score)
    }

    /// The score of a query term in a document whose terms have these impacts: that of its best expansion.
    fn query_term_score(&self, query_term: &QueryTerm, impact: impl Fn(TermId) -> Option<Impact>) -> f32 {
        let value = |term: TermId, weight: f32| {
            let weight = weight * self.term_weight(term);
            impact(term).filter(|_| weight > 0.0).map_or(0.0, |impact| weight * impact.value())
        };
        if let [only] = query_term.expansions.as_slice()
            && let [term] = only.terms.as_slice()
        {
            return value(*term, query_term.weight * only.weight);
        }
        query_term.expansions.iter().fold(0.0, |best: f32, expansion| {
            let weight = query_term.weight * expansion.weight_per_term();
            best.max(expansion.terms.iter().fold(0.0, |sum, term| sum + value(*term, weight)))
        })
    }

    fn add_query_term(&self, query_term: &QueryTerm, buffers: &mut ScoringBuffers) {
        let ScoringBuffers { total, best, expansion: sum_of_terms } = buffers;
        if let [only] = query_term.expansions.as_slice()
            && let [term] = only.terms.as_slice()
        {
            self.for_each_posting(*term, query_term.weight * only.weight, |document, value| {
                total.update(document, |sum| sum + value);
            });
            return;
        }
        best.reserve(self.id_bound());
        for expansion in &query_term.expansions {
            let weight = query_term.weight * expansion.weight_per_term();
            if let [term] = expansion.terms.as_slice() {
                self.for_each_posting(*term, weight, |document, value| {
                    best.update(document, |known| known.max(value));
                });
                continue;
            }
            sum_of_terms.reserve(self.id_bound());
            for term in &expansion.terms {
                self.for_each_posting(*term, weight, |document, value| {
                    sum_of_terms.update(document, |sum| sum + value);
                });
            }
            sum_of_terms.drain(|document, value| best.update(document, |known| known.max(value)));
        }
        best.drain(|document, value| total.update(document, |sum| sum + value));
    }

    /// Calls `each` with the weighted impact of a term on every document it occurs in.
    fn for_each_posting(&self, term: TermId, weight: f32, mut each: impl FnMut(DocumentId, f32)) {
        let Some(term) = self.vocabulary.get(term) else { return };
        let weight = weight * self.weight_of(term);
        if weight > 0.0 {
            term.postings.for_each(|document, impact| {
                let value = weight * impact.value();
                // A sum of zero counts as not found yet.
                if value > 0.0 {
                    each(document, value);
                }
            });
        }
    }

    /// Orders by score, best first; ties by name, source and key, so that the order of insertion has no effect.
    pub(crate) fn compare_scored(&self, one: ScoredDocument, other: ScoredDocument) -> Ordering {
        other.1.total_cmp(&one.1).then_with(|| {
            let key =
                |id| self.document(id).map(|document| (&document.name, &document.source, &document.key));
            key(one.0).cmp(&key(other.0))
        })
    }
}

/// Keeps the best documents without sorting all of them.
struct TopDocuments<'a> {
    index: &'a SearchIndex,
    limit: usize,
    /// Documents with a lower score cannot be among the best.
    threshold: f32,
    entries: Vec<ScoredDocument>,
}

impl TopDocuments<'_> {
    fn offer(&mut self, scored: ScoredDocument) {
        if scored.1 < self.threshold || scored.1 <= 0.0 {
            return;
        }
        self.entries.push(scored);
        // Seldom, because a prune looks at all entries.
        if self.entries.len() >= self.limit.max(16).saturating_mul(4) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.entries.len() > self.limit && self.limit > 0 {
            let index = self.index;
            self.entries
                .select_nth_unstable_by(self.limit - 1, |one, other| index.compare_scored(*one, *other));
            self.entries.truncate(self.limit);
            self.threshold = self.entries.last().map_or(0.0, |(_, score)| *score);
        }
    }

    fn finish(mut self) -> Vec<ScoredDocument> {
        self.prune();
        let index = self.index;
        self.entries.sort_unstable_by(|one, other| index.compare_scored(*one, *other));
        self.entries.truncate(self.limit);
        self.entries
    }
}

#[cfg(test)]
#[path = "scoring_tests.rs"]
mod tests;
