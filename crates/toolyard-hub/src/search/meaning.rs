//! What a local model adds to the search of words: tools whose meaning is near to that of the request.

use std::sync::Arc;

use super::{
    document::{ServerText, ToolText},
    embedding::{EmbeddingModel, StoredVector, meaning_text, request_text},
    index::{Document, SearchIndex},
    query::{Query, Slot},
    stem::{english, is_stop_term},
    terms::{DocumentId, TermId},
    words::{Cut, words},
};

/// So many tools may be found by their meaning alone.
const NEAREST: usize = 100;

/// The tools nearest to a request: 1 for the nearest, and less for others.
pub(crate) type Nearest = Vec<(DocumentId, f32)>;

/// Where a tool stands by its meaning, and the terms of its name.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    vector: StoredVector,
    name: Box<[TermId]>,
}

impl SearchIndex {
    /// The same index, still empty, with a model that places tools by their meaning.
    #[must_use]
    pub fn with_model(mut self, model: Arc<EmbeddingModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// Where a tool stands by its meaning.
    pub(crate) fn place(&mut self, server: &ServerText, tool: &ToolText) -> Option<Placed> {
        let vector = self.model.as_ref()?.embed(&meaning_text(&server.id, tool))?.stored();
        let mut name = Vec::new();
        words(&tool.name, |word, cut| {
            let term = english(word);
            if cut != Cut::Whole && !is_stop_term(&term) {
                name.push(self.terms.intern(&term));
            }
        });
        Some(Placed { vector, name: name.into() })
    }

    /// The tools nearest to a request.
    pub(crate) fn nearest(&self, request: &str) -> Nearest {
        let Some(model) = &self.model else { return Vec::new() };
        let meanings = self.lexicon.as_ref().map(|lexicon| lexicon.meanings(request)).unwrap_or_default();
        let Some(request) = model.embed(&request_text(request, &meanings)) else { return Vec::new() };
        let mut near: Nearest = self
            .all()
            .filter_map(|(number, document)| {
                Some((number, model.score(&request, &document.meaning.as_ref()?.vector)))
            })
            .filter(|(_, score)| *score > 0.0)
            .collect();
        near.sort_unstable_by(|one, other| self.compare(*one, *other));
        near.truncate(NEAREST);
        let best = near.first().map_or(1.0, |(_, score)| *score);
        near.iter_mut().for_each(|(_, score)| *score /= best);
        near
    }

    /// How much meaning may count beside the words: little where the request says the name of the best tool, and less the
    /// more sentences it has, since a request for several things means none of them.
    pub(crate) fn gate(&self, query: &Query, best: Option<&Document>) -> f32 {
        let Some(model) = &self.model else { return 0.0 };
        let said = best.map_or(0.0, |best| self.name_said(query, best));
        #[expect(clippy::cast_precision_loss, reason = "no request has so many sentences")]
        let sentences = query.sentences.max(1) as f32;
        model.gate(said).most() / sentences
    }

    /// Which part of a tool's name the request says, rare words counting more.
    fn name_said(&self, query: &Query, document: &Document) -> f32 {
        let (mut said, mut all) = (0.0, 0.0);
        for term in document.meaning.iter().flat_map(|placed| placed.name.iter().copied()) {
            let weight = self.weight(term);
            all += weight;
            let own = |slot: &Slot| slot.alternatives.iter().any(|one| one.is_own(term));
            if query.slots.iter().any(own) {
                said += weight;
            }
        }
        if all > 0.0 { said / all } else { 0.0 }
    }
}
