//! Accumulators: one value per document, or per past request; reusable without clearing the whole array.

/// The id of a document within its index.
pub(crate) type DocumentId = u32;

/// Values by id; all zero between two uses.
#[derive(Default)]
pub(crate) struct Accumulator {
    values: Vec<f32>,
    /// The ids of the values that were updated.
    updated: Vec<DocumentId>,
}

impl Accumulator {
    /// Makes room for ids below `capacity`.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        if self.values.len() < capacity {
            self.values.resize(capacity, 0.0);
        }
    }

    pub(crate) fn update(&mut self, document: DocumentId, combine: impl FnOnce(f32) -> f32) {
        let Some(value) = usize::try_from(document).ok().and_then(|at| self.values.get_mut(at)) else {
            return;
        };
        if *value == 0.0 {
            self.updated.push(document);
        }
        *value = combine(*value);
    }

    /// Calls `each` with every updated value and resets it to zero.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(DocumentId, f32)) {
        for document in self.updated.drain(..) {
            if let Some(value) = usize::try_from(document).ok().and_then(|at| self.values.get_mut(at)) {
                each(document, std::mem::take(value));
            }
        }
    }
}
