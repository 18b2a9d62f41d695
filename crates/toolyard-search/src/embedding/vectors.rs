//! Embedding vectors: exact for a request, one byte per dimension for an indexed tool.

/// Larger than any supported model has; keeps dot products within an `i32`.
pub(super) const MAX_DIMENSIONS: usize = 4096;

/// The largest code of a request: the sum of 4096 products of 2047 and 127 fits an `i32`.
const MAX_REQUEST_CODE: f32 = 2047.0;

/// The largest code of an indexed tool.
const MAX_STORED_CODE: f32 = 127.0;

/// The embedding of a text, normalized to unit length.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    values: Box<[f32]>,
    /// The values quantized, for dot products with [`QuantizedEmbedding`]s.
    codes: Box<[i16]>,
    /// A value is about its code times this.
    scale: f32,
}

impl Embedding {
    /// Normalizes a vector; `None` if it is zero, not finite or has too many dimensions.
    pub fn new(mut values: Vec<f32>) -> Option<Self> {
        if values.len() > MAX_DIMENSIONS {
            return None;
        }
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_finite() || length <= f32::MIN_POSITIVE {
            return None;
        }
        for value in &mut values {
            *value /= length;
        }
        let scale = max_abs(&values) / MAX_REQUEST_CODE;
        let codes = values.iter().map(|value| quantize_i16(value / scale)).collect();
        Some(Self { values: values.into(), codes, scale })
    }

    /// Number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.values.len()
    }

    /// The coordinates.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Cosine similarity; 0 for vectors of different dimensions.
    pub fn dot(&self, other: &Self) -> f32 {
        if self.values.len() != other.values.len() {
            return 0.0;
        }
        self.values.iter().zip(&other.values).map(|(a, b)| a * b).sum()
    }

    /// Quantizes the embedding to one byte per dimension.
    pub fn quantize(&self) -> QuantizedEmbedding {
        let scale = max_abs(&self.values) / MAX_STORED_CODE;
        let codes = self.values.iter().map(|value| quantize_i8(value / scale)).collect();
        QuantizedEmbedding { codes, scale }
    }
}

/// An embedding with one byte per dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedEmbedding {
    codes: Box<[i8]>,
    scale: f32,
}

impl QuantizedEmbedding {
    /// `None` if the scale is no number.
    pub(super) fn from_parts(codes: Box<[i8]>, scale: f32) -> Option<Self> {
        scale.is_finite().then_some(Self { codes, scale })
    }

    pub(super) fn codes(&self) -> &[i8] {
        &self.codes
    }

    pub(super) fn scale(&self) -> f32 {
        self.scale
    }

    /// Cosine similarity, within 0.01 of [`Embedding::dot`]; 0 for vectors of different dimensions.
    pub fn dot(&self, request: &Embedding) -> f32 {
        if self.codes.len() != request.codes.len() {
            return 0.0;
        }
        let sum: i32 =
            request.codes.iter().zip(&self.codes).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a similarity needs no more than 24 bits")]
        let sum = sum as f32;
        sum * request.scale * self.scale
    }
}

fn max_abs(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |max, value| value.abs().max(max))
}

fn quantize_i16(value: f32) -> i16 {
    #[expect(clippy::cast_possible_truncation, reason = "clamped to the largest code")]
    let code = value.round().clamp(-MAX_REQUEST_CODE, MAX_REQUEST_CODE) as i16;
    code
}

fn quantize_i8(value: f32) -> i8 {
    #[expect(clippy::cast_possible_truncation, reason = "clamped to the largest code")]
    let code = value.round().clamp(-MAX_STORED_CODE, MAX_STORED_CODE) as i8;
    code
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn vectors_that_cannot_be_normalized_are_rejected() {
        assert_eq!(Embedding::new(vec![0.0; 8]), None);
        assert_eq!(Embedding::new(vec![f32::NAN, 1.0]), None);
        assert_eq!(Embedding::new(vec![f32::INFINITY, 1.0]), None);
        assert_eq!(Embedding::new(Vec::new()), None);
        assert_eq!(Embedding::new(vec![1.0; MAX_DIMENSIONS + 1]), None);
    }

    #[test]
    fn vectors_of_different_dimensions_have_no_similarity() {
        let short = Embedding::new(vec![1.0, 0.0]).unwrap();
        let long = Embedding::new(vec![1.0, 0.0, 0.0]).unwrap();
        assert_eq!(short.dot(&long), 0.0);
        assert_eq!(long.quantize().dot(&short), 0.0);
    }

    #[test]
    fn the_largest_sum_does_not_overflow() {
        let most = Embedding::new(vec![1.0; MAX_DIMENSIONS]).unwrap();
        assert!((most.quantize().dot(&most) - 1.0).abs() < 0.001);
    }

    proptest! {
        #[test]
        fn quantization_changes_similarity_by_less_than_a_hundredth(
            pairs in proptest::collection::vec((-1.0f32..1.0, -1.0f32..1.0), 1..300),
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            if let (Some(a), Some(b)) = (Embedding::new(a), Embedding::new(b)) {
                prop_assert!((b.quantize().dot(&a) - a.dot(&b)).abs() < 0.01);
                prop_assert!(a.dot(&b).abs() < 1.0001);
            }
        }
    }
}
