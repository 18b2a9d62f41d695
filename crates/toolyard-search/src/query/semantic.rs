//! Semantic search: tools whose text is near in meaning to the request, by embeddings that the caller computes.

use crate::{
    accumulator::DocumentId,
    embeddings::{Embeddings, dot, truncated},
    index::search_index::{Document, SearchIndex},
    query::{parsed_query::Query, scoring::ScoredDocument},
};

/// Embeddings that are kept of removed tools, besides one per tool.
const MAX_UNUSED_EMBEDDINGS: usize = 4096;
/// Tools that are added to the candidates for their embedding alone.
const MAX_NEAREST_TOOLS: usize = 100;
/// Weight of similarity, relative to the best lexical score, for a request that mentions nothing of the best tool's name. A
/// request that mentions all of it has usually found its tool.
const MAX_WEIGHT: f32 = 1.6;
const MIN_WEIGHT: f32 = 0.8;

impl SearchIndex {
    /// An index that also finds tools by embeddings: of the texts of tools ([`Self::texts_to_embed`]) and of requests
    /// ([`Self::request_to_embed`]). It finds by words what has no embedding yet.
    pub fn with_embeddings() -> Self {
        Self { embeddings: Some(Embeddings::default()), ..Self::default() }
    }

    /// The texts of at most `limit` tools that have no embedding.
    pub fn texts_to_embed(&self, limit: usize) -> Vec<String> {
        let documents = self.documents.iter().flatten();
        documents.filter_map(|document| document.text_to_embed.clone()).take(limit).collect()
    }

    /// Adds the embeddings of texts of tools.
    pub fn add_embeddings(&mut self, texts: &[String], vectors: Vec<Vec<f32>>) {
        let max_known = 2 * self.len() + MAX_UNUSED_EMBEDDINGS;
        let Some(known) = &mut self.embeddings else { return };
        known.forget_tools_above(max_known);
        texts.iter().zip(vectors).for_each(|(text, vector)| known.add_tool(text, vector));
        self.documents.iter_mut().flatten().for_each(|document| document.take_embedding(known));
    }

    /// The text to embed for a request; `None` if that is known or not needed.
    pub fn request_to_embed(&self, request: &str) -> Option<String> {
        let is_known = self.embeddings.as_ref()?.of_request(request).is_some();
        (!is_known && !request.trim().is_empty()).then(|| truncated(request))
    }

    /// Adds the embedding of a request.
    pub fn add_request_embedding(&mut self, request: &str, vector: Vec<f32>) {
        if let Some(known) = &mut self.embeddings {
            known.add_request(request, vector);
        }
    }

    /// The tools nearest to a request, best first; scores are relative to the nearest.
    pub(crate) fn nearest_by_embedding(&self, request: &str) -> Vec<ScoredDocument> {
        let known = self.embeddings.as_ref().and_then(|known| known.of_request(request));
        let Some(wanted) = known else { return Vec::new() };
        let similarity = |(id, document): (DocumentId, &Option<Document>)| {
            let similarity = dot(document.as_ref()?.embedding.as_deref()?, wanted);
            (similarity > 0.0).then_some((id, similarity))
        };
        let mut nearest: Vec<ScoredDocument> = (0..).zip(&self.documents).filter_map(similarity).collect();
        nearest.sort_unstable_by(|one, other| self.compare_scored(*one, *other));
        nearest.truncate(MAX_NEAREST_TOOLS);
        let best = nearest.first().map_or(1.0, |(_, score)| *score);
        nearest.iter_mut().for_each(|(_, score)| *score /= best);
        nearest
    }

    /// Weight of similarity for a query, relative to the best lexical score: lower the more sentences it has, because one
    /// embedding cannot fit several tasks.
    pub(crate) fn semantic_weight(&self, query: &Query, best: Option<&Document>) -> f32 {
        let name_coverage = best.map_or(0.0, |best| self.name_coverage(query, best)).clamp(0.0, 1.0);
        #[expect(clippy::cast_precision_loss, reason = "bounded by the length of a request")]
        let sentences = query.sentence_count.max(1) as f32;
        (MAX_WEIGHT - (MAX_WEIGHT - MIN_WEIGHT) * name_coverage) / sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        embeddings::MAX_REQUESTS,
        testing::{source, tool},
    };

    /// Two dimensions: whether a text has one of these words, and whether it has one of those.
    fn vector(text: &str) -> Vec<f32> {
        let mentions = |words: [&str; 2]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
        vec![mentions(["alpha", "omega"]), mentions(["file", "folder"])]
    }

    fn embed_tools(index: &mut SearchIndex) {
        let texts = index.texts_to_embed(usize::MAX);
        index.add_embeddings(&texts, texts.iter().map(|text| vector(text)).collect());
    }

    fn index() -> SearchIndex {
        let mut index = SearchIndex::with_embeddings();
        index.put(&source("chat"), &[tool("quux", "alpha"), tool("read_file", "Reads.")]);
        embed_tools(&mut index);
        index
    }

    fn keys(index: &SearchIndex, request: &str) -> Vec<String> {
        index.search(request, 5).iter().map(|hit| hit.key.to_string()).collect()
    }

    #[test]
    fn a_request_without_a_shared_word_finds_the_nearest_tool() {
        let mut index = index();
        let request = "omega";
        assert_eq!(index.request_to_embed(request).as_deref(), Some(request));
        assert!(keys(&index, request).is_empty(), "no word is shared");
        index.add_request_embedding(request, vector(request));
        assert_eq!(index.request_to_embed(request), None);
        assert_eq!(keys(&index, request)[0], "quux");
        assert_eq!(keys(&index, "read_file")[0], "read_file", "a request without embedding goes by words");
    }

    #[test]
    fn embeddings_are_kept_while_a_source_is_away() {
        let mut index = index();
        assert!(index.texts_to_embed(9).is_empty());
        index.remove("chat");
        index.put(&source("chat"), &[tool("quux", "alpha"), tool("new", "New.")]);
        assert_eq!(index.texts_to_embed(9), ["chat: new. New."]);
    }

    #[test]
    fn unusable_embeddings_change_nothing() {
        for unusable in [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![1.0, 0.0, 0.0]] {
            let mut index = index();
            let by_words = keys(&index, "read a file");
            index.add_request_embedding("read a file", unusable);
            assert_eq!(keys(&index, "read a file"), by_words);
        }
        let mut index = index();
        index.put(&source("odd"), &[tool("odd", "Odd.")]);
        let texts = index.texts_to_embed(9);
        index.add_embeddings(&texts, vec![vec![f32::INFINITY]]);
        assert!(index.texts_to_embed(9).is_empty(), "not asked for again");
    }

    #[test]
    fn the_oldest_requests_are_forgotten() {
        let mut index = index();
        for number in 0..=MAX_REQUESTS {
            index.add_request_embedding(&number.to_string(), vec![1.0, 0.0]);
        }
        assert!(index.request_to_embed("0").is_some() && index.request_to_embed("1").is_none());
    }
}
