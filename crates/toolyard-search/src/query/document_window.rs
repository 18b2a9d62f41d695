//! [`DocumentWindow`]: the sums of consecutive documents, few enough for the caches of the processor.

use std::ops::Range;

use crate::{
    accumulator::DocumentId,
    index::{postings::PostingReader, search_index::SearchIndex},
    query::parsed_query::Expansion,
};

/// Numbers of a window, four bytes each: about the second-level cache of a processor.
const MAX_NUMBERS: usize = 1 << 16;
const MAX_WINDOW_DOCUMENTS: usize = 1 << 14;
const MIN_WINDOW_DOCUMENTS: usize = 1 << 6;

/// Position of a document in its window.
type WindowOffset = u16;

/// The postings of an expansion, read from the first document to the last.
pub(crate) struct ImpactList<'a> {
    /// The weight of each term, and its postings. The impacts of several terms are added up.
    terms: Vec<(f32, PostingReader<'a>)>,
    /// Where the best expansion of the query term is kept, if it has several.
    slot: Option<usize>,
}

impl<'a> ImpactList<'a> {
    pub(crate) fn new(
        index: &'a SearchIndex,
        query_term_weight: f32,
        expansion: &Expansion,
        slot: Option<usize>,
    ) -> Self {
        let weight = query_term_weight * expansion.weight_per_term();
        let terms = expansion.terms.iter().filter(|term| weight * term.weight > 0.0);
        let reader = |id| index.vocabulary.get(id).map(|term| term.postings.reader());
        let terms = terms.filter_map(|term| Some((weight * term.weight, reader(term.id)?))).collect();
        Self { terms, slot }
    }
}

/// The sums of a window of documents, of those that were found; all others are zero.
#[derive(Default)]
pub(crate) struct DocumentWindow {
    rows: Rows,
    /// Sums over the terms of one expansion.
    phrase: Vec<f32>,
    found_phrase: Vec<WindowOffset>,
}

/// A row per document: its sum, and the best expansion of every slot, which is part of the sum.
#[derive(Default)]
struct Rows {
    numbers: Vec<f32>,
    width: usize,
    found: Vec<WindowOffset>,
}

impl DocumentWindow {
    /// Prepares an empty window for queries with this many slots; returns the number of documents that it has room for.
    pub(crate) fn prepare(&mut self, slot_count: usize) -> usize {
        self.rows.width = slot_count + 1;
        let documents = (MAX_NUMBERS / self.rows.width).clamp(MIN_WINDOW_DOCUMENTS, MAX_WINDOW_DOCUMENTS);
        let length = self.rows.numbers.len().max(documents * self.rows.width);
        self.rows.numbers.resize(length, 0.0);
        self.phrase.resize(MAX_WINDOW_DOCUMENTS, 0.0);
        documents
    }

    /// How many documents have a sum.
    pub(crate) fn found_count(&self) -> usize {
        self.rows.found.len()
    }

    /// Adds the impacts of a range of documents, which begins at the first document of the window. `only_found`: to documents that
    /// have a sum.
    pub(crate) fn add(&mut self, list: &mut ImpactList<'_>, range: &Range<DocumentId>, only_found: bool) {
        let Self { rows, phrase, found_phrase } = self;
        let slot = list.slot;
        let offset = |document: DocumentId| {
            #[expect(clippy::cast_possible_truncation, reason = "a window has at most 65,536 documents")]
            let offset = document.wrapping_sub(range.start) as WindowOffset;
            offset
        };
        if let [(weight, postings)] = list.terms.as_mut_slice() {
            let weight = *weight;
            postings.read(range, |document, impact| {
                rows.add(offset(document), slot, weight * impact.value(), only_found);
            });
            return;
        }
        for (weight, postings) in &mut list.terms {
            postings.read(range, |document, impact| {
                let at = offset(document);
                if let Some(sum) = phrase.get_mut(usize::from(at)) {
                    *sum += *weight * impact.value();
                    found_phrase.push(at);
                }
            });
        }
        for at in found_phrase.drain(..) {
            // Zero if the document was there before.
            let value = phrase.get_mut(usize::from(at)).map(std::mem::take).unwrap_or_default();
            rows.add(at, slot, value, only_found);
        }
    }

    /// Resets the documents with a lower sum.
    pub(crate) fn retain(&mut self, min_sum: f32) {
        let Rows { numbers, width, found } = &mut self.rows;
        found.retain(|at| {
            let start = usize::from(*at) * *width;
            let Some(row) = numbers.get_mut(start..start + *width) else { return false };
            let is_kept = row.first().is_some_and(|sum| *sum >= min_sum);
            if !is_kept {
                row.fill(0.0);
            }
            is_kept
        });
    }

    /// Calls `each` with every document that has a sum, and resets it. `first` is the first document of the window.
    pub(crate) fn drain(&mut self, first: DocumentId, mut each: impl FnMut(DocumentId, f32)) {
        let Rows { numbers, width, found } = &mut self.rows;
        for at in found.drain(..) {
            let start = usize::from(at) * *width;
            let Some(row) = numbers.get_mut(start..start + *width) else { continue };
            if let Some(sum) = row.first().filter(|sum| **sum > 0.0) {
                each(first + DocumentId::from(at), *sum);
            }
            row.fill(0.0);
        }
    }
}

impl Rows {
    #[inline]
    fn add(&mut self, at: WindowOffset, slot: Option<usize>, value: f32, only_found: bool) {
        let start = usize::from(at) * self.width;
        let Some([sum, best @ ..]) = self.numbers.get_mut(start..start + self.width) else { return };
        if *sum == 0.0 {
            if only_found {
                return;
            }
            self.found.push(at);
        }
        let Some(slot) = slot else {
            *sum += value;
            return;
        };
        if let Some(best) = best.get_mut(slot)
            && value > *best
        {
            *sum += value - *best;
            *best = value;
        }
    }
}
