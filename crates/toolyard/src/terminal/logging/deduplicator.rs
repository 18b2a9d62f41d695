//! Decides which log lines are written and which are counted: a line is written once, and its repetitions are reported once
//! per window.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use super::line::Repetition;

/// Lines of one place in the code that are written in a window; further ones are counted as similar.
const MAX_DISTINCT_LINES: usize = 20;

/// Counts repeated lines. Memory is bounded by the number of places in the code that log.
#[derive(Debug)]
pub(super) struct Deduplicator<L> {
    window: Duration,
    places: HashMap<&'static str, LoggingPlace<L>>,
}

/// A place in the code that logs.
#[derive(Debug)]
struct LoggingPlace<L> {
    lines: HashMap<L, Repeated>,
    /// The first of the lines that are not tracked.
    similar: Option<(L, Repeated)>,
}

#[derive(Debug, Clone, Copy)]
struct Repeated {
    window_start: Instant,
    count: u64,
}

impl<L: Clone + Eq + Hash> Deduplicator<L> {
    pub(super) fn new(window: Duration) -> Self {
        Self { window, places: HashMap::new() }
    }

    /// Whether to write a line now. Otherwise it is counted.
    pub(super) fn admit(&mut self, place: &'static str, line: &L, now: Instant) -> bool {
        let place =
            self.places.entry(place).or_insert_with(|| LoggingPlace { lines: HashMap::new(), similar: None });
        if let Some(repeated) = place.lines.get_mut(line) {
            repeated.count += 1;
            return false;
        }
        if place.lines.len() < MAX_DISTINCT_LINES {
            place.lines.insert(line.clone(), Repeated { window_start: now, count: 0 });
            return true;
        }
        let first = || (line.clone(), Repeated { window_start: now, count: 0 });
        place.similar.get_or_insert_with(first).1.count += 1;
        false
    }

    /// The lines that were repeated in a window that has ended; of these, repetitions are counted anew.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(L, Repetition)> {
        let window = self.window;
        self.take(now, |repeated| now.saturating_duration_since(repeated.window_start) >= window)
    }

    /// All lines with repetitions that were not reported yet.
    pub(super) fn take_all(&mut self, now: Instant) -> Vec<(L, Repetition)> {
        self.take(now, |_| true)
    }

    /// Whether a line was counted and not reported yet.
    pub(super) fn has_unreported(&self) -> bool {
        self.places
            .values()
            .any(|place| place.similar.is_some() || place.lines.values().any(|repeated| repeated.count > 0))
    }

    fn take(&mut self, now: Instant, is_due: impl Fn(&Repeated) -> bool) -> Vec<(L, Repetition)> {
        let mut due = Vec::new();
        let seconds = |since: Instant| now.saturating_duration_since(since).as_secs().max(1);
        for place in self.places.values_mut() {
            place.lines.retain(|line, repeated| {
                if !is_due(repeated) {
                    return true;
                }
                let Repeated { window_start, count } = *repeated;
                if count == 0 {
                    return false;
                }
                due.push((line.clone(), Repetition::Identical { count, seconds: seconds(window_start) }));
                *repeated = Repeated { window_start: now, count: 0 };
                true
            });
            if let Some((line, Repeated { window_start, count })) =
                place.similar.take_if(|(_, repeated)| is_due(repeated))
            {
                due.push((line, Repetition::Similar { count, seconds: seconds(window_start) }));
            }
        }
        self.places.retain(|_, place| !place.lines.is_empty() || place.similar.is_some());
        due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    #[test]
    fn a_line_that_repeats_135_times_is_written_once_and_counted() {
        let start = Instant::now();
        let mut deduplicator = Deduplicator::new(WINDOW);
        let written = (0..135)
            .filter(|number| {
                deduplicator.admit("disk", &"no space left", start + Duration::from_millis(number * 50))
            })
            .count();
        assert_eq!(written, 1);
        assert!(deduplicator.take_due(start + Duration::from_secs(9)).is_empty());
        let due = deduplicator.take_due(start + WINDOW);
        assert_eq!(due, [("no space left", Repetition::Identical { count: 134, seconds: 10 })]);
        // One more in the next window is reported at its end; after a quiet window the line is written again.
        assert!(!deduplicator.admit("disk", &"no space left", start + WINDOW * 3 / 2));
        assert_eq!(deduplicator.take_due(start + WINDOW * 2).len(), 1);
        assert!(deduplicator.take_due(start + WINDOW * 3).is_empty());
        assert!(deduplicator.admit("disk", &"no space left", start + WINDOW * 3));
    }

    proptest! {
        /// Lines of a few places and values over a few windows, some of them with a flood of distinct values.
        #[test]
        fn every_line_is_written_or_counted_and_no_flood_passes(
            steps in proptest::collection::vec((0..3usize, 0..60u32, 0..2_000u64), 0..400),
        ) {
            let places = ["one", "two", "three"];
            let mut now = Instant::now();
            let mut deduplicator = Deduplicator::new(WINDOW);
            let (mut written, mut counted, mut reports) = (0u64, 0u64, 0u64);
            let begin = now;
            let count_of = |due: Vec<((usize, u32), Repetition)>| -> (u64, u64) {
                let reports = due.len() as u64;
                (reports, due.iter().map(|(_, repetition)| match repetition {
                    Repetition::Identical { count, .. } | Repetition::Similar { count, .. } => *count,
                }).sum())
            };
            for (place, value, pause) in &steps {
                now += Duration::from_millis(*pause);
                let (new_reports, new_counted) = count_of(deduplicator.take_due(now));
                (reports, counted) = (reports + new_reports, counted + new_counted);
                written += u64::from(deduplicator.admit(places[*place], &(*place, *value), now));
            }
            counted += count_of(deduplicator.take_all(now)).1;
            prop_assert!(!deduplicator.has_unreported());
            prop_assert_eq!(written + counted, steps.len() as u64);
            let windows = (now - begin).as_secs() / WINDOW.as_secs() + 2;
            let max_lines = 3 * windows * (MAX_DISTINCT_LINES as u64 * 2 + 1);
            prop_assert!(written + reports <= max_lines, "{written} lines, {reports} reports");
        }
    }
}
