//! Score accumulators: one sum per document, reusable without clearing the whole array.

/// The number of a document within its index.
pub(crate) type DocumentId = u32;

/// Sums by document number; all zero between two uses.
#[derive(Default)]
pub(crate) struct Accumulator {
    values: Vec<f32>,
    touched: Vec<DocumentId>,
}

impl Accumulator {
    /// Makes room for document numbers below `capacity`.
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
            self.touched.push(document);
        }
        *value = combine(*value);
    }

    /// Calls `each` with every non-zero sum and resets it to zero.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(DocumentId, f32)) {
        for document in self.touched.drain(..) {
            if let Some(value) = usize::try_from(document).ok().and_then(|at| self.values.get_mut(at)) {
                each(document, std::mem::take(value));
            }
        }
    }
}
