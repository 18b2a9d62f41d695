//! Functions of single numbers and rows, written so that the compiler vectorizes them: no calls per number, and sums in
//! several lanes.

use ndarray::{Array1, Array2};

/// Lanes of a sum; as many as four vectors of four numbers.
const LANES: usize = 16;

/// Adds `other`, a matrix of the same shape.
pub(super) fn add(matrix: &mut Array2<f32>, other: &Array2<f32>) {
    *matrix += other;
}

/// Adds a bias to each row and applies the activation function [`gelu`].
pub(super) fn add_bias_gelu(matrix: &mut Array2<f32>, bias: &Array1<f32>) {
    let Some(bias) = bias.as_slice() else { return };
    for row in rows(matrix) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value = gelu(*value + bias);
        }
    }
}

/// Scales attention scores and applies softmax to each row.
pub(super) fn softmax(scores: &mut Array2<f32>, head_size: usize) {
    #[expect(clippy::cast_precision_loss, reason = "a head has at most a few thousand dimensions")]
    let scale = (head_size as f32).sqrt().recip();
    for row in rows(scores) {
        // Subtracting the maximum avoids overflow.
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for score in row.iter_mut() {
            *score = exp((*score - max) * scale);
        }
        let share = sum(row).recip();
        row.iter_mut().for_each(|score| *score *= share);
    }
}

/// Layer normalization of each row.
pub(super) fn normalize(matrix: &mut Array2<f32>, weight: &Array1<f32>, bias: &Array1<f32>, epsilon: f32) {
    let (Some(weight), Some(bias)) = (weight.as_slice(), bias.as_slice()) else { return };
    #[expect(clippy::cast_precision_loss, reason = "at most a few thousand")]
    let share = (weight.len() as f32).recip();
    for row in rows(matrix) {
        let mean = sum(row) * share;
        row.iter_mut().for_each(|value| *value -= mean);
        let variance = sum_of_squares(row) * share;
        let factor = (variance + epsilon).sqrt().recip();
        for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
            *value = *value * factor * weight + bias;
        }
    }
}

fn rows(matrix: &mut Array2<f32>) -> impl Iterator<Item = &mut [f32]> {
    let columns = matrix.ncols().max(1);
    matrix.as_slice_mut().unwrap_or_default().chunks_exact_mut(columns)
}

fn sum(values: &[f32]) -> f32 {
    fold_lanes(values, |sum, value| sum + value)
}

fn sum_of_squares(values: &[f32]) -> f32 {
    fold_lanes(values, |sum, value| sum + value * value)
}

fn fold_lanes(values: &[f32], add: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = add(*lane, *value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = add(*lane, *value);
    }
    lanes.iter().sum()
}

/// x · Φ(x), with the error function from Abramowitz and Stegun, 7.1.26 (exact to 2e-7).
fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series =
        t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_8 + t * (-1.453_152 + t * 1.061_405_4))));
    let tail = 0.5 * series * exp(-z * z);
    if x < 0.0 { x * tail } else { x * (1.0 - tail) }
}

/// The exponential function for numbers up to 0, exact to 3e-7 of its value; 0 below −87. NaN gives NaN.
///
/// e^x = 2^n · e^r with |r| ≤ ln 2 / 2: 2^n is made from bits and e^r is a polynomial, unlike a call of `f32::exp`.
fn exp(x: f32) -> f32 {
    /// 1.5 · 2^23: adding it rounds a small number to an integer, which its lowest bits then hold.
    const ROUNDING: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    /// The exponent of 1 in an `f32`, less the bits of [`ROUNDING`].
    const EXPONENT_OFFSET: u32 = 127u32.wrapping_sub(ROUNDING.to_bits());

    let rounded = x * std::f32::consts::LOG2_E + ROUNDING;
    let n = rounded - ROUNDING;
    let r = x - n * LN_2_HIGH - n * LN_2_LOW;
    let polynomial = 1.0
        + r * (1.0 + r * (0.5 + r * (0.166_666_66 + r * (0.041_666_6 + r * (8.333_4e-3 + r * 1.388_9e-3)))));
    let power_of_two = f32::from_bits(rounded.to_bits().wrapping_add(EXPONENT_OFFSET) << 23);
    let value = polynomial * power_of_two;
    if x < -87.0 { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn exp_at_its_ends() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }

    proptest! {
        #[test]
        fn exp_agrees_with_the_standard_library(x in -87.0f32..0.0) {
            let expected = f64::from(x).exp();
            prop_assert!((f64::from(exp(x)) - expected).abs() <= 3e-7 * expected, "{x}");
        }

        #[test]
        fn sums_include_every_number(values in proptest::collection::vec(-10i16..10, 0..100)) {
            let floats: Vec<f32> = values.iter().map(|value| f32::from(*value)).collect();
            let expected: i16 = values.iter().sum();
            prop_assert_eq!(sum(&floats), f32::from(expected));
        }
    }
}
