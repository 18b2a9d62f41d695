//! Adds up what the words of a request say about every tool, and keeps the best.

use std::{cell::RefCell, cmp::Ordering};

use super::{
    index::SearchIndex,
    query::{Alternative, Query, Slot},
    terms::{DocumentId, Term, TermId},
};

/// Rare terms count more, by this power of their usual weight.
const RARITY: f32 = 0.784;
/// How much of a word's noise is taken from its weight.
const NOISE: f32 = 1.1;

/// A tool and its score.
pub(crate) type Scored = (DocumentId, f32);

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[derive(Default)]
struct Scratch {
    /// Over all words of the request.
    total: Sums,
    /// The best alternative of one word.
    best: Sums,
    /// The words of one alternative.
    parts: Sums,
}

/// Sums by number; all zero between two uses.
#[derive(Default)]
pub(crate) struct Sums {
    values: Vec<f32>,
    touched: Vec<DocumentId>,
}

impl Sums {
    pub(crate) fn grow(&mut self, numbers: usize) {
        if self.values.len() < numbers {
            self.values.resize(numbers, 0.0);
        }
    }

    pub(crate) fn update(&mut self, document: DocumentId, combine: impl FnOnce(f32) -> f32) {
        let Some(value) = usize::try_from(document).ok().and_then(|at| self.values.get_mut(at)) else {
            return;
        };
        if *value == 0.0 {
            self.touched.push(document);
        }
        *value = combine(*value);
    }

    /// Calls `each` with everything that is not zero, and makes it zero.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(DocumentId, f32)) {
        for document in self.touched.drain(..) {
            if let Some(value) = usize::try_from(document).ok().and_then(|at| self.values.get_mut(at)) {
                each(document, std::mem::take(value));
            }
        }
    }
}

impl SearchIndex {
    /// The weight of a term in this catalogue: rare ones tell more, and what people say anyway tells less.
    pub(crate) fn weight(&self, term: TermId) -> f32 {
        self.terms.get(term).map_or(0.0, |term| self.weight_of(term))
    }

    #[expect(clippy::cast_precision_loss, reason = "a logarithm is taken of it")]
    fn weight_of(&self, term: &Term) -> f32 {
        let (all, with) = (self.len() as f32, term.postings.len() as f32);
        let rarity = (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln();
        (rarity.powf(RARITY) + NOISE * term.noise).max(0.0)
    }

    /// The `limit` best tools for a request, by the sum over its words.
    pub(crate) fn best(&self, query: &Query, limit: usize) -> Vec<Scored> {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.total.grow(self.numbers());
            for slot in &query.slots {
                self.add_slot(slot, scratch);
            }
            let mut pool = Pool { index: self, limit, threshold: 0.0, kept: Vec::new() };
            scratch.total.drain(|document, score| pool.offer((document, score)));
            pool.best()
        })
    }

    fn add_slot(&self, slot: &Slot, scratch: &mut Scratch) {
        let Scratch { total, best, parts } = scratch;
        if let [only] = slot.alternatives.as_slice()
            && let [term] = only.terms.as_slice()
        {
            self.each(*term, slot.weight * only.weight, |document, value| {
                total.update(document, |sum| sum + value);
            });
            return;
        }
        best.grow(self.numbers());
        for alternative in &slot.alternatives {
            let weight = slot.weight * alternative.share();
            if let [term] = alternative.terms.as_slice() {
                self.each(*term, weight, |document, value| best.update(document, |known| known.max(value)));
                continue;
            }
            parts.grow(self.numbers());
            for term in &alternative.terms {
                self.each(*term, weight, |document, value| parts.update(document, |sum| sum + value));
            }
            parts.drain(|document, value| best.update(document, |known| known.max(value)));
        }
        best.drain(|document, value| total.update(document, |sum| sum + value));
    }

    /// Calls `each` with what a term says about every document it stands in.
    fn each(&self, term: TermId, weight: f32, mut each: impl FnMut(DocumentId, f32)) {
        let Some(term) = self.terms.get(term) else { return };
        let weight = weight * self.weight_of(term);
        if weight > 0.0 {
            term.postings.iter().for_each(|(document, impact)| each(document, weight * impact.value()));
        }
    }

    /// The better score first; between equals the name decides, then the server, so that the order in which servers
    /// were added does not matter.
    pub(crate) fn compare(&self, one: Scored, other: Scored) -> Ordering {
        other.1.total_cmp(&one.1).then_with(|| {
            let key = |number| {
                self.document(number).map(|document| (&document.name, &document.server, &document.key))
            };
            key(one.0).cmp(&key(other.0))
        })
    }
}

impl Alternative {
    /// What each of its terms counts.
    #[expect(clippy::cast_precision_loss, reason = "a phrase has few words")]
    pub(crate) fn share(&self) -> f32 {
        self.weight / self.terms.len().max(1) as f32
    }
}

/// The best of what is offered, without sorting everything.
struct Pool<'a> {
    index: &'a SearchIndex,
    limit: usize,
    threshold: f32,
    kept: Vec<Scored>,
}

impl Pool<'_> {
    fn offer(&mut self, scored: Scored) {
        if scored.1 < self.threshold || scored.1 <= 0.0 {
            return;
        }
        self.kept.push(scored);
        if self.kept.len() >= self.limit.max(16).saturating_mul(4) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.kept.len() > self.limit && self.limit > 0 {
            let index = self.index;
            self.kept.select_nth_unstable_by(self.limit - 1, |one, other| index.compare(*one, *other));
            self.kept.truncate(self.limit);
            self.threshold = self.kept.last().map_or(0.0, |(_, score)| *score);
        }
    }

    fn best(mut self) -> Vec<Scored> {
        self.prune();
        let index = self.index;
        self.kept.sort_unstable_by(|one, other| index.compare(*one, *other));
        self.kept.truncate(self.limit);
        self.kept
    }
}
