//! Semantic search: tools whose embeddings are near to that of the request.

use crate::{
    accumulator::DocumentId,
    embedding::query_embedding_text,
    index::search_index::{Document, SearchIndex},
    query::parsed_query::{Query, QueryTerm},
};

/// Tools that are added to the candidates for their embedding alone.
const MAX_NEAREST_TOOLS: usize = 100;

impl SearchIndex {
    /// The tools nearest to a request, best first; scores are relative to the nearest.
    pub(crate) fn nearest_by_embedding(&self, request: &str) -> Vec<(DocumentId, f32)> {
        let Some(model) = &self.model else { return Vec::new() };
        let translations =
            self.lexicon.as_ref().map(|lexicon| lexicon.translate(request)).unwrap_or_default();
        let text = query_embedding_text(request, &translations);
        let Some(request_embedding) = model.embed(&text) else { return Vec::new() };
        let mut nearest: Vec<(DocumentId, f32)> = self
            .documents()
            .filter_map(|(id, document)| {
                Some((id, document.embedding.as_ref()?.vector.dot(&request_embedding)))
            })
            .filter(|(_, score)| *score > 0.0)
            .collect();
        nearest.sort_unstable_by(|one, other| self.compare_scored(*one, *other));
        nearest.truncate(MAX_NEAREST_TOOLS);
        let best = nearest.first().map_or(1.0, |(_, score)| *score);
        nearest.iter_mut().for_each(|(_, score)| *score /= best);
        nearest
    }

    /// Weight of semantic similarity for a query, relative to the best lexical score: low where the request mentions the
    /// name of the best tool, and lower the more sentences it has, because one embedding cannot fit several tasks.
    pub(crate) fn semantic_weight(&self, query: &Query, best: Option<&Document>) -> f32 {
        let Some(model) = &self.model else { return 0.0 };
        let name_coverage = best.map_or(0.0, |best| self.name_coverage(query, best));
        #[expect(clippy::cast_precision_loss, reason = "bounded by the length of a request")]
        let sentences = query.sentence_count.max(1) as f32;
        model.semantic_weight(name_coverage) / sentences
    }

    /// Share of a tool's name that the request mentions, weighted by the rarity of its terms.
    fn name_coverage(&self, query: &Query, document: &Document) -> f32 {
        let (mut covered, mut total) = (0.0, 0.0);
        for term in document.embedding.iter().flat_map(|embedding| embedding.name_terms.iter().copied()) {
            let weight = self.term_weight(term);
            total += weight;
            let mentions =
                |query_term: &QueryTerm| query_term.expansions.iter().any(|one| one.is_exact(term));
            if query.terms.iter().any(mentions) {
                covered += weight;
            }
        }
        if total > 0.0 { covered / total } else { 0.0 }
    }
}
