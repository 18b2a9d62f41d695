//! Directions of meaning: exact for a request, one byte per dimension for what is kept of a tool.

/// More dimensions than any model this is made for; keeps the sums below within an `i32`.
pub(super) const MAX_DIMENSIONS: usize = 4096;

/// Steps of a request's coordinates: 4096 dimensions × 2047 × 127 is still an `i32`.
const REQUEST_STEPS: f32 = 2047.0;

/// Steps of a kept coordinate.
const KEPT_STEPS: f32 = 127.0;

/// A meaning as a direction of length one.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    values: Box<[f32]>,
    steps: Box<[i16]>,
    step: f32,
}

impl Vector {
    /// The direction of some coordinates; `None` for those that have none (all zero, not finite, too many).
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
        let step = largest(&values) / REQUEST_STEPS;
        let steps = values.iter().map(|value| nearest(value / step)).collect();
        Some(Self { values: values.into(), steps, step })
    }

    /// How many coordinates it has.
    pub fn dimensions(&self) -> usize {
        self.values.len()
    }

    /// Its coordinates.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// How alike two meanings are: 1 for the same, about 0 for unrelated ones. 0 for vectors of different models.
    pub fn dot(&self, other: &Self) -> f32 {
        if self.values.len() != other.values.len() {
            return 0.0;
        }
        self.values.iter().zip(&other.values).map(|(a, b)| a * b).sum()
    }

    /// What is kept of it for a tool.
    pub fn stored(&self) -> StoredVector {
        let step = largest(&self.values) / KEPT_STEPS;
        let steps = self.values.iter().map(|value| kept_step(value / step)).collect();
        StoredVector { steps, step }
    }
}

/// The meaning of a tool as it is kept: one byte per dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    steps: Box<[i8]>,
    step: f32,
}

impl StoredVector {
    /// How many bytes its coordinates take.
    pub fn bytes(&self) -> usize {
        self.steps.len()
    }

    /// How alike a request and this are, within a hundredth of [`Vector::dot`]. 0 for vectors of different models.
    pub fn dot(&self, request: &Vector) -> f32 {
        if self.steps.len() != request.steps.len() {
            return 0.0;
        }
        let sum: i32 =
            request.steps.iter().zip(&self.steps).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a similarity needs no more than 24 bits")]
        let sum = sum as f32;
        sum * request.step * self.step
    }
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |most, value| value.abs().max(most))
}

fn nearest(value: f32) -> i16 {
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the number of steps")]
    let step = value.round().clamp(-REQUEST_STEPS, REQUEST_STEPS) as i16;
    step
}

fn kept_step(value: f32) -> i8 {
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the number of steps")]
    let step = value.round().clamp(-KEPT_STEPS, KEPT_STEPS) as i8;
    step
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn has_no_direction_without_length() {
        assert_eq!(Vector::new(vec![0.0; 8]), None);
        assert_eq!(Vector::new(vec![f32::NAN, 1.0]), None);
        assert_eq!(Vector::new(vec![f32::INFINITY, 1.0]), None);
        assert_eq!(Vector::new(Vec::new()), None);
        assert_eq!(Vector::new(vec![1.0; MAX_DIMENSIONS + 1]), None);
    }

    #[test]
    fn vectors_of_different_models_are_not_alike() {
        let short = Vector::new(vec![1.0, 0.0]).unwrap();
        let long = Vector::new(vec![1.0, 0.0, 0.0]).unwrap();
        assert_eq!(short.dot(&long), 0.0);
        assert_eq!(long.stored().dot(&short), 0.0);
    }

    #[test]
    fn the_largest_sum_does_not_overflow() {
        let most = Vector::new(vec![1.0; MAX_DIMENSIONS]).unwrap();
        assert!((most.stored().dot(&most) - 1.0).abs() < 0.001);
    }

    proptest! {
        #[test]
        fn what_is_kept_says_the_same_within_a_hundredth(
            pairs in proptest::collection::vec((-1.0f32..1.0, -1.0f32..1.0), 1..300),
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            if let (Some(a), Some(b)) = (Vector::new(a), Vector::new(b)) {
                prop_assert!((b.stored().dot(&a) - a.dot(&b)).abs() < 0.01);
                prop_assert!(a.dot(&b).abs() < 1.0001);
            }
        }
    }
}
