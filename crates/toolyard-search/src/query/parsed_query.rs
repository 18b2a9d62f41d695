//! A parsed request: weighted terms, each with its expansions.

use crate::{accumulator::DocumentId, index::vocabulary::TermId};

/// Weight of a term of the whole task when one of its steps is searched for.
const TASK_TERM_WEIGHT: f32 = 0.25;

/// How a word of the request matches a term of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// The same term.
    Exact,
    /// Two words of the request, written as one in the tool.
    Compound,
    /// Another word of the same root.
    SameRoot,
    /// A synonym.
    Synonym,
    /// An English translation.
    Translation,
    /// The type of a value, such as `url` for `https://example.com`.
    Value,
    /// A subject or an action that the word stands for.
    Concept,
}

/// Terms that a word of the request may appear as in a tool definition.
#[derive(Debug, Clone)]
pub(crate) struct Expansion {
    /// Usually one term; several share the weight.
    pub(crate) terms: Vec<WeightedTerm>,
    pub(crate) weight: f32,
    pub(crate) kind: MatchKind,
}

/// A term of the index, and its weight in the catalogue, which is computed once per request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeightedTerm {
    pub(crate) id: TermId,
    pub(crate) weight: f32,
}

impl Expansion {
    /// Weight of each of its terms.
    #[expect(clippy::cast_precision_loss, reason = "a phrase has few words")]
    pub(crate) fn weight_per_term(&self) -> f32 {
        self.weight / self.terms.len().max(1) as f32
    }

    /// Whether this is a translation by the given term.
    pub(crate) fn is_translation(&self, term: TermId) -> bool {
        self.kind == MatchKind::Translation && self.is_only(term)
    }

    /// Whether this is exactly the given term.
    pub(crate) fn is_exact(&self, term: TermId) -> bool {
        self.kind == MatchKind::Exact && self.is_only(term)
    }

    fn is_only(&self, term: TermId) -> bool {
        matches!(self.terms.as_slice(), [only] if only.id == term)
    }
}

/// One word or phrase of the request. Only the best matching expansion counts.
#[derive(Debug, Clone)]
pub(crate) struct QueryTerm {
    /// Unique within the query.
    pub(crate) key: String,
    /// As written in the request.
    pub(crate) word: String,
    pub(crate) expansions: Vec<Expansion>,
    pub(crate) weight: f32,
    /// Index of its sentence; [`Query::sentence_count`] for translations, which are not assigned to a sentence.
    pub(crate) sentence: usize,
}

/// Two adjacent terms of the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryBigram {
    pub(crate) hash: u32,
    pub(crate) terms: [TermId; 2],
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) terms: Vec<QueryTerm>,
    /// Concepts that the request mentions. They count the less the better the words themselves match.
    pub(crate) concepts: Vec<QueryTerm>,
    pub(crate) bigrams: Vec<QueryBigram>,
    pub(crate) sentence_count: usize,
    /// Commas, which separate the parts of a sentence.
    pub(crate) comma_count: usize,
    /// Lowercase names of tools that the request mentions.
    pub(crate) tool_names: Vec<String>,
    /// Tools that served similar requests, best first, with scores from 0 to 1.
    pub(crate) past_uses: Vec<(DocumentId, f32)>,
    /// The tools nearest in meaning, with scores relative to the nearest.
    pub(crate) nearest: Vec<(DocumentId, f32)>,
}

impl Query {
    /// Adds the concepts to the terms, at a part of their weight.
    pub(crate) fn with_concepts(mut self, share: f32) -> Self {
        let concepts = std::mem::take(&mut self.concepts);
        self.terms.extend(concepts.into_iter().map(|term| QueryTerm { weight: term.weight * share, ..term }));
        self
    }

    /// Adds the terms of the task of which this request is a step, at a lower weight.
    pub(crate) fn within_task(mut self, task: &Self) -> Self {
        for term in &task.terms {
            if self.terms.iter().all(|step_term| step_term.key != term.key) {
                self.terms.push(QueryTerm {
                    weight: term.weight * TASK_TERM_WEIGHT,
                    sentence: 0,
                    ..term.clone()
                });
            }
        }
        self
    }
}
