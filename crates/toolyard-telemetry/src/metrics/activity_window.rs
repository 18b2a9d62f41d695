//! [`ActivityWindow`]: the calls of a source in the last hour, by minute, and how long those of the last minutes took.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The length of the window.
pub(super) const WINDOW_MINUTES: usize = 60;
/// Percentiles are those of the calls of this many minutes, the current one included.
pub(super) const LATENCY_MINUTES: usize = 5;

const MAX_MICROS: u64 = 3_600_000_000;
/// Two digits are within 1 %.
const SIGNIFICANT_DIGITS: u8 = 2;

/// The calls of a source. Minutes are counted since the start of the process.
#[derive(Debug)]
pub(super) struct ActivityWindow {
    counts: [MinuteCounts; WINDOW_MINUTES],
    latencies: [MinuteLatencies; LATENCY_MINUTES],
}

#[derive(Debug, Clone, Copy, Default)]
struct MinuteCounts {
    minute: u64,
    calls: u64,
    failures: u64,
}

#[derive(Debug, Default)]
struct MinuteLatencies {
    minute: u64,
    /// In microseconds; `None` until the first call.
    micros: Option<Histogram<u32>>,
}

/// The sum of several windows.
#[derive(Debug)]
pub(super) struct ActivitySum {
    /// The calls of each minute, oldest first.
    pub(super) calls: [u64; WINDOW_MINUTES],
    /// Those that failed.
    pub(super) failures: [u64; WINDOW_MINUTES],
    micros: Option<Histogram<u64>>,
}

impl Default for ActivityWindow {
    fn default() -> Self {
        Self { counts: [MinuteCounts::default(); WINDOW_MINUTES], latencies: Default::default() }
    }
}

impl ActivityWindow {
    pub(super) fn record(&mut self, minute: u64, duration: Duration, is_failure: bool) {
        let [count_slot, latency_slot] = [WINDOW_MINUTES, LATENCY_MINUTES].map(|slots| slot(minute, slots));
        if let Some(counts) = self.counts.get_mut(count_slot) {
            if counts.minute != minute {
                *counts = MinuteCounts { minute, ..MinuteCounts::default() };
            }
            counts.calls += 1;
            counts.failures += u64::from(is_failure);
        }
        let Some(latencies) = self.latencies.get_mut(latency_slot) else { return };
        if latencies.minute != minute {
            latencies.minute = minute;
            latencies.micros.iter_mut().for_each(Histogram::reset);
        }
        if latencies.micros.is_none() {
            latencies.micros = Histogram::new(SIGNIFICANT_DIGITS).ok();
        }
        if let Some(micros) = &mut latencies.micros {
            // It grows as needed, and cannot fail below the largest value.
            let _ = micros.record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(MAX_MICROS));
        }
    }
}

impl Default for ActivitySum {
    fn default() -> Self {
        Self {
            calls: [0; WINDOW_MINUTES],
            failures: [0; WINDOW_MINUTES],
            micros: Histogram::new(SIGNIFICANT_DIGITS).ok(),
        }
    }
}

impl ActivitySum {
    /// Adds the calls of a window up to the minute `now`.
    pub(super) fn add(&mut self, window: &ActivityWindow, now: u64) {
        let totals = self.calls.iter_mut().zip(&mut self.failures);
        for (age, (calls, failures)) in (0..WINDOW_MINUTES as u64).rev().zip(totals) {
            let Some(minute) = now.checked_sub(age) else { continue };
            let counts = window.counts.get(slot(minute, WINDOW_MINUTES));
            if let Some(counts) = counts.filter(|counts| counts.minute == minute) {
                *calls += counts.calls;
                *failures += counts.failures;
            }
        }
        let Some(sum) = &mut self.micros else { return };
        let is_recent = |latencies: &&MinuteLatencies| {
            latencies.minute <= now && now - latencies.minute < LATENCY_MINUTES as u64
        };
        for micros in
            window.latencies.iter().filter(is_recent).filter_map(|latencies| latencies.micros.as_ref())
        {
            for value in micros.iter_recorded() {
                let _ = sum.record_n(value.value_iterated_to(), value.count_since_last_iteration());
            }
        }
    }

    /// The duration within which this fraction of the calls of the last minutes ended; `None` without calls.
    pub(super) fn percentile(&self, fraction: f64) -> Option<Duration> {
        let micros = self.micros.as_ref().filter(|micros| !micros.is_empty())?;
        Some(Duration::from_micros(micros.value_at_quantile(fraction)))
    }
}

fn slot(minute: u64, slots: usize) -> usize {
    usize::try_from(minute % slots as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(window: &ActivityWindow, now: u64) -> ActivitySum {
        let mut sum = ActivitySum::default();
        sum.add(window, now);
        sum
    }

    proptest! {
        #[test]
        fn the_window_counts_what_a_list_would(
            calls in proptest::collection::vec((0_u64..4, 1_u64..10_000, any::<bool>()), 1..300), pause in 0_u64..90,
        ) {
            let (mut window, mut minute, mut list) = (ActivityWindow::default(), 0, Vec::new());
            for (step, millis, is_failure) in calls {
                minute += step;
                window.record(minute, Duration::from_millis(millis), is_failure);
                list.push((minute, millis, is_failure));
            }
            let now = minute + pause;
            let sum = sum(&window, now);
            for (index, (calls, failures)) in sum.calls.iter().zip(sum.failures).enumerate() {
                let expected = |only_failures: bool| {
                    let is_counted = |(minute, _, is_failure): &&(u64, u64, bool)| {
                        minute + 59 == now + index as u64 && (*is_failure || !only_failures)
                    };
                    list.iter().filter(is_counted).count() as u64
                };
                prop_assert_eq!((*calls, failures), (expected(false), expected(true)));
            }
            let mut recent: Vec<u64> =
                list.iter().filter(|(minute, ..)| now - minute < 5).map(|(_, millis, _)| *millis).collect();
            recent.sort_unstable();
            let middle = recent.get(recent.len().div_ceil(2).saturating_sub(1));
            let found = sum.percentile(0.5).map(|found| found.as_secs_f64() * 1e3);
            prop_assert_eq!(found.is_some(), middle.is_some());
            if let (Some(found), Some(middle)) = (found, middle) {
                prop_assert!((found / *middle as f64 - 1.0).abs() < 0.02, "{} instead of {}", found, middle);
            }
        }
    }
}
