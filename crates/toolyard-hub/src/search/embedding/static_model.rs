//! A static model: one vector per piece of a word; a text is the sum of its pieces. Small and quick.

use super::error::EmbeddingError;
use super::tensors::{FILE, Tensors};
use super::vector::{MAX_DIMENSIONS, Vector};
use super::word_pieces::WordPieces;

/// What a long text says, it says in its first pieces.
const MAX_PIECES: usize = 512;

/// A model as model2vec writes it: `embeddings`, and where rows are shared or weighted `mapping` and `weights`.
#[derive(Debug)]
pub(super) struct StaticModel {
    pieces: WordPieces,
    rows: Rows,
    dimensions: usize,
    /// Which row a piece has; without it the piece's own number.
    mapping: Option<Vec<usize>>,
    /// How much a piece counts; without it all count as much as their rows are long.
    weights: Option<Vec<f32>>,
}

#[derive(Debug)]
enum Rows {
    Bytes(Vec<i8>),
    Floats(Vec<f32>),
}

impl StaticModel {
    pub(super) fn read(tensors: &Tensors<'_>, pieces: WordPieces) -> Result<Self, EmbeddingError> {
        let name = if tensors.has("embeddings") { "embeddings" } else { "embedding.weight" };
        let (shape, rows) = match tensors.bytes(name)? {
            Some(numbers) => (numbers.shape, Rows::Bytes(numbers.values)),
            None => {
                let numbers = tensors.floats(name)?;
                (numbers.shape, Rows::Floats(numbers.values))
            }
        };
        let &[count, dimensions] = shape.as_slice() else {
            return Err(EmbeddingError::damaged(FILE, format!("`{name}` is not a table")));
        };
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(EmbeddingError::unsupported(format!("a vector of {dimensions} dimensions")));
        }
        let mapping = tensors.has("mapping").then(|| tensors.places("mapping")).transpose()?;
        let weights = tensors.has("weights").then(|| tensors.floats("weights")).transpose()?;
        let weights = weights.map(|numbers| numbers.values);
        let known =
            mapping.as_ref().map_or(count, Vec::len).min(weights.as_ref().map_or(usize::MAX, Vec::len));
        if pieces.count() > known || mapping.iter().flatten().any(|row| *row >= count) {
            return Err(EmbeddingError::damaged(FILE, "the tokenizer has pieces without a vector"));
        }
        Ok(Self { pieces, rows, dimensions, mapping, weights })
    }

    pub(super) fn embed(&self, text: &str) -> Option<Vector> {
        let mut sum = vec![0.0; self.dimensions];
        for piece in self.pieces.of(text).flatten().take(MAX_PIECES) {
            self.add(&mut sum, piece);
        }
        Vector::new(sum)
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn add(&self, sum: &mut [f32], piece: usize) {
        let row = self.mapping.as_ref().map_or(Some(piece), |mapping| mapping.get(piece).copied());
        let weight = self.weights.as_ref().map_or(Some(1.0), |weights| weights.get(piece).copied());
        let (Some(row), Some(weight)) = (row, weight) else { return };
        let range = row * self.dimensions..(row + 1) * self.dimensions;
        match &self.rows {
            Rows::Bytes(rows) => {
                for (total, value) in sum.iter_mut().zip(rows.get(range).unwrap_or_default()) {
                    *total += weight * f32::from(*value);
                }
            }
            Rows::Floats(rows) => {
                for (total, value) in sum.iter_mut().zip(rows.get(range).unwrap_or_default()) {
                    *total += weight * value;
                }
            }
        }
    }
}
