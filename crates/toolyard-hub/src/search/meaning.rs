//! What a local model adds to the search of words: tools whose meaning is near to that of the request.

use std::sync::Arc;

use super::{
    document::{ServerText, ToolText},
    embedding::{EmbeddingModel, StoredVector, meaning_text, request_text},
    index::{Document, SearchIndex},
    query::{Query, Slot},
    stem::{english, is_stop_term},
    terms::DocumentId,
    words::{Cut, words},
};

/// So many tools may be found by their meaning alone.
const NEAREST: usize = 100;

/// The tools nearest to a request: 1 for the nearest, and less for others.
pub(crate) type Nearest = Vec<(DocumentId, f32)>;

impl SearchIndex {
    /// The same index, still empty, with a model that places tools by their meaning.
    #[must_use]
    pub fn with_model(mut self, model: Arc<EmbeddingModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// Where a tool stands by its meaning.
    pub(crate) fn place(&self, server: &ServerText, tool: &ToolText) -> Option<StoredVector> {
        let model = self.model.as_ref()?;
        Some(model.embed(&meaning_text(&server.id, tool))?.stored())
    }

    /// The tools nearest to a request.
    pub(crate) fn nearest(&self, request: &str) -> Nearest {
        let Some(model) = &self.model else { return Vec::new() };
        let meanings = self.lexicon.as_ref().map(|lexicon| lexicon.meanings(request)).unwrap_or_default();
        let Some(request) = model.embed(&request_text(request, &meanings)) else { return Vec::new() };
        let mut near: Nearest = self
            .all()
            .filter_map(|(number, document)| {
                Some((number, model.score(&request, document.meaning.as_ref()?)))
            })
            .filter(|(_, score)| *score > 0.0)
            .collect();
        near.sort_unstable_by(|one, other| self.compare(*one, *other));
        near.truncate(NEAREST);
        let best = near.first().map_or(1.0, |(_, score)| *score);
        near.iter_mut().for_each(|(_, score)| *score /= best);
        near
    }

    /// How much meaning may count beside the words: little where the request says the name of the best tool.
    pub(crate) fn gate(&self, query: &Query, best: Option<&Document>) -> f32 {
        let Some(model) = &self.model else { return 0.0 };
        let said = best.map_or(0.0, |best| self.name_said(query, best));
        model.gate(said).most()
    }

    /// Which part of a tool's name the request says, rare words counting more.
    fn name_said(&self, query: &Query, document: &Document) -> f32 {
        let (mut said, mut all) = (0.0, 0.0);
        words(&document.name, |word, cut| {
            let term = english(word);
            if cut == Cut::Whole || is_stop_term(&term) {
                return;
            }
            let Some(id) = self.terms.id(&term) else { return };
            let weight = self.weight(id);
            all += weight;
            let own = |slot: &Slot| slot.alternatives.iter().any(|one| one.is_own(id));
            if query.slots.iter().any(own) {
                said += weight;
            }
        });
        if all > 0.0 { said / all } else { 0.0 }
    }
}
