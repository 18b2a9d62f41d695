//! Selects the hits among the best candidates: exact names first, phrases and whole sentences boosted, and tools
//! discounted for terms that a selected tool already covers.

use crate::{
    accumulator::DocumentId,
    index::{
        search_index::{Document, SearchIndex},
        vocabulary::TermId,
    },
    query::{
        parsed_query::{Expansion, Query, QueryTerm, WeightedTerm},
        scoring::ScoredDocument,
    },
};

/// Boost of a bigram that query and definition share, relative to the weight of its terms.
const BIGRAM_BOOST: f32 = 0.5;
/// Boost of the best sentence of the request, relative to its score.
const SENTENCE_BOOST: f32 = 0.49;
/// Discount of a query term that a selected tool covers fully.
const COVERAGE_DISCOUNT: f32 = 0.11;
/// Upper bound on the score from past requests, relative to the best score without it.
const MAX_HISTORY_SHARE: f32 = 1.0;
/// Tools of one name are duplicates if they share at least this part of their terms.
const MIN_DUPLICATE_OVERLAP: f32 = 0.5;
/// At least this many of the tools that the request names are considered.
const MIN_NAMED_CANDIDATES: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SelectedTool {
    pub(crate) document: DocumentId,
    pub(crate) score: f32,
    /// Part of the score that comes from past requests.
    pub(crate) history_score: f32,
    /// Copies of the tool, see [`SearchIndex::is_duplicate`].
    pub(crate) duplicates: Vec<DocumentId>,
}

/// The score of one tool, by query term.
struct Candidate<'a> {
    id: DocumentId,
    document: &'a Document,
    /// By query term. Where there are past uses their score comes last, so that it is discounted like a term.
    contributions: Vec<f32>,
    /// Score of phrases, the best sentence and semantic similarity.
    bonus: f32,
    /// Whether the request contains its name.
    is_named: bool,
    is_selected: bool,
}

impl SearchIndex {
    /// Selects at most `limit` of the candidates, best first.
    pub(crate) fn select(&self, query: &Query, pool: &[ScoredDocument], limit: usize) -> Vec<SelectedTool> {
        let mut candidates = self.candidates(query, pool);
        self.add_semantic_score(query, &mut candidates);
        add_history_score(query, &mut candidates);
        let contribution_count = query.terms.len() + usize::from(!query.past_uses.is_empty());
        let max_contributions: Vec<f32> = (0..contribution_count)
            .map(|index| {
                let contributions = candidates.iter().filter_map(|one| one.contributions.get(index));
                contributions.copied().fold(f32::EPSILON, f32::max)
            })
            .collect();
        // What is left of each contribution after the discounts for the selected tools, as a factor.
        let mut remaining = vec![1.0f32; contribution_count];
        let mut selected: Vec<SelectedTool> = Vec::new();
        while selected.len() < limit {
            let Some((at, score)) = self.best_remaining(&candidates, &remaining) else { break };
            let Some(candidate) = candidates.get_mut(at) else { break };
            candidate.is_selected = true;
            if let Some(first) =
                selected.iter_mut().find(|first| self.is_duplicate(first.document, candidate.document))
            {
                first.duplicates.push(candidate.id);
                continue;
            }
            let history = candidate.contributions.iter().zip(&remaining).nth(query.terms.len());
            let history_score = history.map_or(0.0, |(contribution, remaining)| contribution * remaining);
            for ((remaining, contribution), max) in
                remaining.iter_mut().zip(&candidate.contributions).zip(&max_contributions)
            {
                *remaining *= 1.0 - COVERAGE_DISCOUNT * contribution / max;
            }
            selected.push(SelectedTool {
                document: candidate.id,
                score,
                history_score,
                duplicates: Vec::new(),
            });
        }
        selected
    }

    /// Tools that the request names, then the pool, then tools found only by past uses or embeddings.
    fn candidates(&self, query: &Query, pool: &[ScoredDocument]) -> Vec<Candidate<'_>> {
        let mut ids: Vec<DocumentId> =
            query.tool_names.iter().flat_map(|name| self.documents_named(name)).copied().collect();
        ids.sort_unstable_by(|one, other| self.compare_scored((*one, 0.0), (*other, 0.0)));
        ids.truncate(pool.len().max(MIN_NAMED_CANDIDATES));
        let named_count = ids.len();
        ids.extend(pool.iter().map(|(id, _)| *id));
        let past = query.past_uses.iter().map(|(id, _)| *id);
        ids.extend(past.filter(|past| pool.iter().all(|(id, _)| id != past)));
        for (id, _) in &query.nearest {
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
        let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(ids.len());
        for (at, id) in ids.into_iter().enumerate() {
            let Some(document) = self.document(id) else { continue };
            if at >= named_count && candidates.iter().take(named_count).any(|known| known.id == id) {
                continue;
            }
            let contributions: Vec<f32> =
                query.terms.iter().map(|term| self.contribution(term, document)).collect();
            let bonus = self.bigram_boost(query, document) + sentence_boost(query, &contributions);
            let is_named = at < named_count;
            candidates.push(Candidate { id, document, contributions, bonus, is_named, is_selected: false });
        }
        candidates
    }

    /// Adds the similarity of embeddings, at the weight that [`SearchIndex::semantic_weight`] allows.
    fn add_semantic_score(&self, query: &Query, candidates: &mut [Candidate<'_>]) {
        let best = candidates.iter().max_by(|one, other| one.score_so_far().total_cmp(&other.score_so_far()));
        let Some(best) = best.filter(|_| !query.nearest.is_empty()) else { return };
        let best_score = best.score_so_far();
        let weight = self.semantic_weight(query, (best_score > 0.0).then_some(best.document));
        let max = weight * if best_score > 0.0 { best_score } else { 1.0 };
        for candidate in candidates {
            let near = query.nearest.iter().find(|(id, _)| *id == candidate.id);
            candidate.bonus += near.map_or(0.0, |(_, similarity)| max * similarity);
        }
    }

    /// Score of a query term for a tool, by its best expansion.
    fn contribution(&self, term: &QueryTerm, document: &Document) -> f32 {
        self.best_expansion(term, document).map_or(0.0, |(score, _)| score)
    }

    /// The expansion of a query term with the highest score for a tool.
    pub(crate) fn best_expansion<'a>(
        &self,
        query_term: &'a QueryTerm,
        document: &Document,
    ) -> Option<(f32, &'a Expansion)> {
        let scored = query_term.expansions.iter().map(|expansion| {
            let term_score = |term: &WeightedTerm| {
                document.terms.impact(term.id).map_or(0.0, |impact| impact * term.weight)
            };
            let sum: f32 = expansion.terms.iter().map(term_score).sum();
            (sum * expansion.weight_per_term() * query_term.weight, expansion)
        });
        scored.filter(|(score, _)| *score > 0.0).max_by(|one, other| one.0.total_cmp(&other.0))
    }

    fn bigram_boost(&self, query: &Query, document: &Document) -> f32 {
        let shared = query.bigrams.iter().filter(|bigram| document.terms.has_bigram(bigram.hash));
        shared
            .map(|bigram| {
                bigram.terms.iter().map(|term| self.term_weight(*term)).sum::<f32>() * BIGRAM_BOOST / 2.0
            })
            .sum()
    }

    /// Position and score of the best candidate that is not selected yet.
    fn best_remaining(&self, candidates: &[Candidate<'_>], remaining: &[f32]) -> Option<(usize, f32)> {
        let left = candidates.iter().enumerate().filter(|(_, candidate)| !candidate.is_selected);
        let scored = left.map(|(at, candidate)| {
            let contributions = candidate.contributions.iter().zip(remaining);
            let sum: f32 = contributions.map(|(contribution, remaining)| contribution * remaining).sum();
            (at, candidate, sum + candidate.bonus)
        });
        let best = scored.min_by(|(_, one, one_score), (_, other, other_score)| {
            other
                .is_named
                .cmp(&one.is_named)
                .then_with(|| self.compare_scored((one.id, *one_score), (other.id, *other_score)))
        });
        best.map(|(at, _, score)| (at, score))
    }

    /// Whether two tools are copies or versions of one definition.
    fn is_duplicate(&self, one: DocumentId, other: &Document) -> bool {
        let Some(one) = self.document(one) else { return false };
        one.name == other.name && self.term_overlap(one, other) >= MIN_DUPLICATE_OVERLAP
    }

    /// Jaccard index of the words of two tools.
    #[expect(clippy::cast_precision_loss, reason = "the number of terms of a definition is small")]
    fn term_overlap(&self, one: &Document, other: &Document) -> f32 {
        let is_word = |term: TermId| self.vocabulary.get(term).is_some_and(|term| !term.is_concept);
        let words = |document: &Document| document.terms.ids().filter(|term| is_word(*term)).count();
        let is_shared = |term: TermId| is_word(term) && other.terms.impact(term).is_some();
        let shared = one.terms.ids().filter(|term| is_shared(*term)).count();
        let all = words(one) + words(other) - shared;
        if all == 0 { 1.0 } else { shared as f32 / all as f32 }
    }
}

/// Adds the score of past uses, bounded by the best score without it.
fn add_history_score(query: &Query, candidates: &mut [Candidate<'_>]) {
    if query.past_uses.is_empty() {
        return;
    }
    let best = candidates.iter().map(Candidate::score_so_far).fold(0.0, f32::max);
    // Without any other score, history alone decides.
    let max = if best > 0.0 { MAX_HISTORY_SHARE * best } else { MAX_HISTORY_SHARE };
    for candidate in candidates {
        let past = query.past_uses.iter().find(|(id, _)| *id == candidate.id);
        candidate.contributions.push(past.map_or(0.0, |(_, score)| max * score));
    }
}

impl Candidate<'_> {
    /// Without the scores that are added later.
    fn score_so_far(&self) -> f32 {
        self.contributions.iter().sum::<f32>() + self.bonus
    }
}

/// A request of several sentences asks for several tools: each needs to fit one sentence well.
fn sentence_boost(query: &Query, contributions: &[f32]) -> f32 {
    if query.sentence_count < 2 {
        return 0.0;
    }
    let mut sums = vec![0.0f32; query.sentence_count];
    for (term, contribution) in query.terms.iter().zip(contributions) {
        if let Some(sum) = sums.get_mut(term.sentence) {
            *sum += contribution;
        }
    }
    SENTENCE_BOOST * sums.into_iter().fold(0.0, f32::max)
}
