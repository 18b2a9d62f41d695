//! Lexical scoring: sums the impacts of the query terms per tool and keeps the best.

use std::{cell::RefCell, cmp::Ordering};

use crate::{
    accumulator::{Accumulator, DocumentId},
    index::{
        search_index::SearchIndex,
        vocabulary::{Term, TermId},
    },
    query::parsed_query::{Query, QueryTerm, WeightedTerm},
};

/// Exponent of the inverse document frequency.
const IDF_EXPONENT: f32 = 0.784;
/// Weight of [`Term::noise_penalty`].
const NOISE_WEIGHT: f32 = 1.1;

/// Added to the share of the tools that have a concept, so that a rare concept does not outweigh the words of a request.
const MIN_CONCEPT_FREQUENCY: f32 = 0.02;

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

impl SearchIndex {
    /// Weight of a term: its inverse document frequency, lowered for filler words.
    pub(crate) fn term_weight(&self, term: TermId) -> f32 {
        self.vocabulary.get(term).map_or(0.0, |term| self.weight_of(term))
    }

    /// A term with its weight.
    pub(crate) fn weighted(&self, id: TermId) -> WeightedTerm {
        WeightedTerm { id, weight: self.term_weight(id) }
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
            for term in &query.terms {
                self.add_query_term(term, buffers);
            }
            let mut top = TopDocuments { index: self, limit, threshold: 0.0, entries: Vec::new() };
            buffers.total.drain(|document, score| top.offer((document, score)));
            top.finish()
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
    fn for_each_posting(&self, term: WeightedTerm, weight: f32, mut each: impl FnMut(DocumentId, f32)) {
        let weight = weight * term.weight;
        if let Some(term) = self.vocabulary.get(term.id).filter(|_| weight > 0.0) {
            for (document, impact) in &term.postings {
                let value = weight * impact.value();
                // A sum of zero counts as not found yet.
                if value > 0.0 {
                    each(*document, value);
                }
            }
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
