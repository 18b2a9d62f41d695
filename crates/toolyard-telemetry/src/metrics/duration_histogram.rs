//! [`DurationHistogram`]: counts durations in buckets, without a lock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The upper bounds of the buckets of MCP operations in seconds, as OpenTelemetry recommends them.
pub(super) const OPERATION_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// Those of model calls, likewise.
pub(super) const MODEL_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Those of HTTP requests, likewise.
pub(super) const HTTP_BOUNDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// Those of operations that often take less than a millisecond: calls of native tools, searches.
pub(super) const FAST_BOUNDS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];

const NANOS_PER_SECOND: f64 = 1e9;

/// What a histogram has counted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HistogramCounts {
    /// The upper bound of each bucket but the last, which has none.
    pub(super) bounds: &'static [f64; 14],
    /// The number of durations in each bucket.
    pub(super) buckets: [u64; 15],
    /// The sum of all durations in seconds.
    pub(super) sum: f64,
}

/// Which buckets a histogram has.
pub(super) trait Bounds {
    const SECONDS: &'static [f64; 14];
    /// The same in nanoseconds.
    const NANOS: [u64; 14];
}

/// [`OPERATION_BOUNDS`].
#[derive(Debug)]
pub(super) struct OperationBounds;

/// [`MODEL_BOUNDS`].
#[derive(Debug)]
pub(super) struct ModelBounds;

/// [`HTTP_BOUNDS`].
#[derive(Debug)]
pub(super) struct HttpBounds;

/// [`FAST_BOUNDS`].
#[derive(Debug)]
pub(super) struct FastBounds;

impl Bounds for OperationBounds {
    const NANOS: [u64; 14] = nanos(&OPERATION_BOUNDS);
    const SECONDS: &'static [f64; 14] = &OPERATION_BOUNDS;
}

impl Bounds for ModelBounds {
    const NANOS: [u64; 14] = nanos(&MODEL_BOUNDS);
    const SECONDS: &'static [f64; 14] = &MODEL_BOUNDS;
}

impl Bounds for HttpBounds {
    const NANOS: [u64; 14] = nanos(&HTTP_BOUNDS);
    const SECONDS: &'static [f64; 14] = &HTTP_BOUNDS;
}

impl Bounds for FastBounds {
    const NANOS: [u64; 14] = nanos(&FAST_BOUNDS);
    const SECONDS: &'static [f64; 14] = &FAST_BOUNDS;
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    reason = "evaluated at compile time for constants"
)]
const fn nanos(seconds: &[f64; 14]) -> [u64; 14] {
    let (mut nanos, mut index) = ([0; 14], 0);
    while index < seconds.len() {
        // Half a nanosecond rounds what has no exact binary form.
        nanos[index] = (seconds[index] * NANOS_PER_SECOND + 0.5) as u64;
        index += 1;
    }
    nanos
}

/// Counts durations in buckets.
#[derive(Debug)]
pub(super) struct DurationHistogram<B> {
    buckets: [AtomicU64; 15],
    sum_nanos: AtomicU64,
    bounds: std::marker::PhantomData<B>,
}

impl<B> Default for DurationHistogram<B> {
    fn default() -> Self {
        Self { buckets: Default::default(), sum_nanos: AtomicU64::new(0), bounds: std::marker::PhantomData }
    }
}

impl<B: Bounds> DurationHistogram<B> {
    pub(super) fn observe(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        // Most operations are fast, so that a search from the first bucket is the shortest.
        let bucket = B::NANOS.iter().take_while(|bound| nanos > **bound).count();
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> HistogramCounts {
        let sum = self.sum_nanos.load(Ordering::Relaxed);
        HistogramCounts {
            bounds: B::SECONDS,
            buckets: self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed)),
            sum: sum as f64 / NANOS_PER_SECOND,
        }
    }
}

impl HistogramCounts {
    /// Adds the counts of a histogram with the same bounds.
    pub(super) fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(bucket, more)| *bucket += more);
        self.sum += other.sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_holds_it() {
        let histogram = DurationHistogram::<OperationBounds>::default();
        for millis in [0, 10, 11, 300_000, 300_001] {
            histogram.observe(Duration::from_millis(millis));
        }
        histogram.observe(Duration::MAX);
        let counts = histogram.counts();
        assert_eq!(counts.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    }
}
