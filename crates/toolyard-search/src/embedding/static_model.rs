//! Static models: one vector per token; a text is the sum of its tokens. Small and fast.

use super::error::EmbeddingError;
use super::tensors::{MODEL_FILE, Tensors};
use super::vectors::{Embedding, MAX_DIMENSIONS};
use super::wordpiece::WordPieceTokenizer;

/// Further tokens of a text are ignored.
const MAX_TOKENS: usize = 512;

/// A model in the format of model2vec: `embeddings`, and optionally `mapping` and `weights`.
#[derive(Debug)]
pub(super) struct StaticModel {
    tokenizer: WordPieceTokenizer,
    rows: EmbeddingTable,
    dimensions: usize,
    /// Row of each token; without a mapping, the row is the token id.
    mapping: Option<Vec<usize>>,
    /// Weight of each token; without weights, 1.
    weights: Option<Vec<f32>>,
}

#[derive(Debug)]
enum EmbeddingTable {
    Int8(Vec<i8>),
    Float32(Vec<f32>),
}

impl StaticModel {
    pub(super) fn read(tensors: &Tensors<'_>, tokenizer: WordPieceTokenizer) -> Result<Self, EmbeddingError> {
        let name = if tensors.has("embeddings") { "embeddings" } else { "embedding.weight" };
        let (shape, rows) = match tensors.int8(name)? {
            Some(tensor) => (tensor.shape, EmbeddingTable::Int8(tensor.values)),
            None => {
                let tensor = tensors.float32(name)?;
                (tensor.shape, EmbeddingTable::Float32(tensor.values))
            }
        };
        let &[count, dimensions] = shape.as_slice() else {
            return Err(EmbeddingError::damaged(MODEL_FILE, format!("`{name}` is not a table")));
        };
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(EmbeddingError::unsupported(format!("a vector of {dimensions} dimensions")));
        }
        let mapping = tensors.has("mapping").then(|| tensors.indices("mapping")).transpose()?;
        let weights = tensors.has("weights").then(|| tensors.float32("weights")).transpose()?;
        let weights = weights.map(|tensor| tensor.values);
        let token_count =
            mapping.as_ref().map_or(count, Vec::len).min(weights.as_ref().map_or(usize::MAX, Vec::len));
        if tokenizer.vocabulary_size() > token_count || mapping.iter().flatten().any(|row| *row >= count) {
            return Err(EmbeddingError::damaged(MODEL_FILE, "the tokenizer has tokens without a vector"));
        }
        Ok(Self { tokenizer, rows, dimensions, mapping, weights })
    }

    pub(super) fn embed(&self, text: &str) -> Option<Embedding> {
        let mut sum = vec![0.0; self.dimensions];
        for token in self.tokenizer.tokenize(text).flatten().take(MAX_TOKENS) {
            self.add(&mut sum, token);
        }
        Embedding::new(sum)
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn add(&self, sum: &mut [f32], token: usize) {
        let row = self.mapping.as_ref().map_or(Some(token), |mapping| mapping.get(token).copied());
        let weight = self.weights.as_ref().map_or(Some(1.0), |weights| weights.get(token).copied());
        let (Some(row), Some(weight)) = (row, weight) else { return };
        let range = row * self.dimensions..(row + 1) * self.dimensions;
        match &self.rows {
            EmbeddingTable::Int8(rows) => {
                for (total, value) in sum.iter_mut().zip(rows.get(range).unwrap_or_default()) {
                    *total += weight * f32::from(*value);
                }
            }
            EmbeddingTable::Float32(rows) => {
                for (total, value) in sum.iter_mut().zip(rows.get(range).unwrap_or_default()) {
                    *total += weight * value;
                }
            }
        }
    }
}
