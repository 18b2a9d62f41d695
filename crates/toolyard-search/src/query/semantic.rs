//! Semantic search: tools whose text is near in meaning to the request, by embeddings that the caller computes.

use std::collections::HashMap;

use crate::{
    accumulator::DocumentId,
    index::search_index::{Document, SearchIndex},
    query::{parsed_query::Query, scoring::ScoredDocument},
};

/// Embeddings that are kept of requests and removed tools, besides one per tool.
const MAX_OTHER_EMBEDDINGS: usize = 4096;
/// Longer texts are cut: small models read about as many tokens.
pub const MAX_EMBEDDED_CHARS: usize = 400;
/// Tools that are added to the candidates for their embedding alone.
const MAX_NEAREST_TOOLS: usize = 100;
/// Weight of similarity, relative to the best lexical score, for a request that mentions nothing of the best tool's name. A
/// request that mentions all of it has usually found its tool.
const MAX_WEIGHT: f32 = 1.6;
const MIN_WEIGHT: f32 = 0.8;

impl SearchIndex {
    /// An index that also finds tools by embeddings. It finds by words what has no embedding yet.
    pub fn with_embeddings() -> Self {
        let mut index = Self::default();
        index.embeddings = Some(HashMap::new());
        index
    }

    /// Whether a tool may have no embedding.
    pub fn may_lack_embeddings(&self) -> bool {
        self.may_lack_embeddings
    }

    /// The texts of at most `limit` tools that have no embedding.
    pub fn texts_to_embed(&mut self, limit: usize) -> Vec<String> {
        let texts = self.documents.iter().flatten().filter_map(|document| document.embedded_text.as_deref());
        let texts = texts.filter(|text| self.lacks_embedding(text)).take(limit).map(str::to_owned);
        let texts: Vec<String> = texts.collect();
        self.may_lack_embeddings = !texts.is_empty();
        texts
    }

    /// Whether the embedding of a request, or of the text of a tool, would help and is not known.
    pub fn lacks_embedding(&self, text: &str) -> bool {
        self.embeddings.as_ref().is_some_and(|known| !known.contains_key(embedded_part(text)))
    }

    /// Adds the embeddings of texts. An empty one is near to nothing.
    pub fn add_embeddings(&mut self, texts: Vec<String>, vectors: Vec<Vec<f32>>) {
        let max_known = 2 * self.len() + MAX_OTHER_EMBEDDINGS;
        let Some(known) = &mut self.embeddings else { return };
        if known.len() > max_known {
            known.clear();
            self.may_lack_embeddings = true;
        }
        let cut = |mut text: String| {
            text.truncate(embedded_part(&text).len());
            text
        };
        known.extend(texts.into_iter().map(cut).zip(vectors.into_iter().map(unit_vector)));
    }

    /// The tools nearest to a request, best first; scores are relative to the nearest.
    pub(crate) fn nearest_by_embedding(&self, request: &str) -> Vec<ScoredDocument> {
        let Some(known) = &self.embeddings else { return Vec::new() };
        let Some(wanted) = known.get(embedded_part(request)) else { return Vec::new() };
        let similarity = |(id, document): (DocumentId, &Option<Document>)| {
            let embedding = known.get(document.as_ref()?.embedded_text.as_deref()?)?;
            // Another model may have computed it.
            if embedding.len() != wanted.len() {
                return None;
            }
            Some((id, dot(embedding, wanted))).filter(|(_, similarity)| *similarity > 0.0)
        };
        let mut nearest: Vec<ScoredDocument> = (0..).zip(&self.documents).filter_map(similarity).collect();
        let compare = |one: &ScoredDocument, other: &ScoredDocument| self.compare_scored(*one, *other);
        if nearest.len() > MAX_NEAREST_TOOLS {
            nearest.select_nth_unstable_by(MAX_NEAREST_TOOLS, compare);
            nearest.truncate(MAX_NEAREST_TOOLS);
        }
        nearest.sort_unstable_by(compare);
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

/// The part of a text that is embedded, by which its embedding is known.
pub(crate) fn embedded_part(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_EMBEDDED_CHARS).map(|(end, _)| end);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// A vector that cannot be normalized is near to nothing: its similarity to others is no positive number.
fn unit_vector(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{source, tool};

    /// Two dimensions: whether a text has one of these words, and whether it has one of those.
    fn vector(text: &str) -> Vec<f32> {
        let mentions = |words: [&str; 2]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
        vec![mentions(["alpha", "omega"]), mentions(["file", "folder"])]
    }

    fn embed_tools(index: &mut SearchIndex) {
        let texts = index.texts_to_embed(usize::MAX);
        let vectors = texts.iter().map(|text| vector(text)).collect();
        index.add_embeddings(texts, vectors);
    }

    fn index() -> SearchIndex {
        let mut index = SearchIndex::with_embeddings();
        index.put(&source("chat"), &[tool("quux", "alpha"), tool("read_file", "Reads.")]);
        embed_tools(&mut index);
        index
    }

    fn add(index: &mut SearchIndex, text: &str, vector: Vec<f32>) {
        index.add_embeddings(vec![text.to_owned()], vec![vector]);
    }

    fn keys(index: &SearchIndex, request: &str) -> Vec<String> {
        index.search(request, 5).iter().map(|hit| hit.key.to_string()).collect()
    }

    #[test]
    fn a_request_without_a_shared_word_finds_the_nearest_tool() {
        let mut index = index();
        assert!(index.lacks_embedding("omega") && keys(&index, "omega").is_empty(), "no word is shared");
        add(&mut index, "omega", vector("omega"));
        assert!(!index.lacks_embedding("omega"));
        assert_eq!(keys(&index, "omega")[0], "quux");
        assert_eq!(keys(&index, "read_file")[0], "read_file", "a request without embedding goes by words");
    }

    #[test]
    fn embeddings_are_kept_while_a_source_is_away() {
        let mut index = index();
        assert!(index.texts_to_embed(9).is_empty());
        index.remove("chat");
        index.put(&source("chat"), &[tool("quux", "alpha"), tool("new_one", "New.")]);
        assert_eq!(index.texts_to_embed(9), ["chat: new one. New."]);
        assert!(index.may_lack_embeddings());
        embed_tools(&mut index);
        assert!(index.texts_to_embed(9).is_empty() && !index.may_lack_embeddings());
        assert!(!SearchIndex::default().lacks_embedding("omega"), "nothing is embedded by default");
    }

    #[test]
    fn a_long_text_is_known_by_its_beginning() {
        let mut index = index();
        let long = |end: &str| "omega ".repeat(MAX_EMBEDDED_CHARS) + end;
        add(&mut index, &long("one"), vec![1.0, 0.0]);
        assert!(!index.lacks_embedding(&long("two")) && index.lacks_embedding("omega"));
        assert_eq!(keys(&index, &long("two"))[0], "quux");
        let known = index.embeddings.as_ref().unwrap();
        assert!(known.keys().all(|key| key.chars().count() <= MAX_EMBEDDED_CHARS));
    }

    #[test]
    fn unusable_embeddings_change_nothing() {
        for unusable in
            [vec![], vec![1.0], vec![1.0; 3], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0]]
        {
            let mut index = index();
            let by_words = keys(&index, "read a file");
            add(&mut index, "read a file", unusable);
            assert_eq!(keys(&index, "read a file"), by_words);
            assert!(!index.lacks_embedding("read a file"), "not asked for again");
        }
    }

    #[test]
    fn the_number_of_embeddings_is_limited() {
        let mut index = index();
        for number in 0..2 * MAX_OTHER_EMBEDDINGS {
            add(&mut index, &number.to_string(), vec![1.0, 0.0]);
        }
        assert!(index.embeddings.as_ref().is_some_and(|known| known.len() <= MAX_OTHER_EMBEDDINGS + 5));
        embed_tools(&mut index);
        add(&mut index, "omega", vector("omega"));
        assert_eq!(keys(&index, "omega")[0], "quux");
    }
}
