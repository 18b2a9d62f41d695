//! Semantic search: tools whose embeddings are near to that of the request.

use crate::{
    accumulator::DocumentId,
    analysis::tokenizer::is_cjk,
    concept::concept_mentions,
    embedding::{Embedding, query_embedding_text},
    index::search_index::{Document, SearchIndex},
    lexicon::{Lexicon as _, Lexicons},
    query::parsed_query::Query,
};

/// Tools that are added to the candidates for their embedding alone.
const MAX_NEAREST_TOOLS: usize = 100;

impl Document {
    /// The similarity of the request to the text of this tool that is most similar to it.
    fn similarity(&self, request: &Embedding) -> Option<f32> {
        self.embeddings.iter().map(|embedding| embedding.dot(request)).max_by(f32::total_cmp)
    }
}

impl SearchIndex {
    /// The tools nearest to a request, best first; scores are relative to the nearest.
    pub(crate) fn nearest_by_embedding(&self, request: &str) -> Vec<(DocumentId, f32)> {
        let Some(embedder) = &self.embedder else { return Vec::new() };
        let text = self.request_embedding_text(request);
        let Some(request_embedding) = embedder.embed_request(&text) else { return Vec::new() };
        let mut nearest: Vec<(DocumentId, f32)> = self
            .documents()
            .filter_map(|(id, document)| Some((id, document.similarity(&request_embedding)?)))
            .filter(|(_, score)| *score > 0.0)
            .collect();
        nearest.sort_unstable_by(|one, other| self.compare_scored(*one, *other));
        nearest.truncate(MAX_NEAREST_TOOLS);
        let best = nearest.first().map_or(1.0, |(_, score)| *score);
        nearest.iter_mut().for_each(|(_, score)| *score /= best);
        nearest
    }

    /// The text of a request that is embedded: translated, and followed by the names of the concepts that it mentions. "Did
    /// the landlord write" alone is as near to landlords as to `search_emails`; followed by "mail" it is not.
    fn request_embedding_text(&self, request: &str) -> String {
        let translations = match &self.lexicon {
            Some(lexicon) => lexicon.translate(request),
            None => Lexicons::built_in().translate(request),
        };
        let mut text = query_embedding_text(request, &translations);
        let names = certain_concept_names(request);
        if !translations.is_empty() || !names.is_empty() {
            // Single characters that nothing translated only blur the embedding of an English model.
            text.retain(|letter| !is_cjk(letter));
        }
        for name in names {
            text.push(' ');
            text.push_str(&name);
        }
        text
    }

    /// Weight of semantic similarity for a query, relative to the best lexical score: low where the request mentions the
    /// name of the best tool, and lower the more sentences it has, because one embedding cannot fit several tasks.
    pub(crate) fn semantic_weight(&self, query: &Query, best: Option<&Document>) -> f32 {
        let Some(model) = self.embedder.as_ref().and_then(|embedder| embedder.opened_model()) else {
            return 0.0;
        };
        let name_coverage = best.map_or(0.0, |best| self.name_coverage(query, best));
        #[expect(clippy::cast_precision_loss, reason = "bounded by the length of a request")]
        let sentences = query.sentence_count.max(1) as f32;
        model.semantic_weight(name_coverage) / sentences
    }
}

/// The names of the concepts that a request mentions without doubt, as words.
fn certain_concept_names(request: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for mention in concept_mentions(request) {
        for (concept, strength) in mention.concepts {
            let name = concept.name().replace(['-', '_'], " ");
            if strength >= 1.0 && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn requests_are_embedded_with_the_names_of_their_concepts() {
        let index = SearchIndex::with_lexicon(Arc::new(Lexicons::built_in()));
        let text = |request| index.request_embedding_text(request);
        assert_eq!(text("did the landlord write to me"), "did the landlord write to me mail");
        assert_eq!(text("把报告.docx发给安娜"), " report .docx send post  word document send");
        assert_eq!(text("zebra"), "zebra");
    }
}
