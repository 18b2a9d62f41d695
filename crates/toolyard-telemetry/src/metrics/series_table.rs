//! [`SeriesTable`]: the series of one metric by the values of their labels. Their number is limited, because names of tools and
//! servers come from outside.

use std::{
    borrow::Cow,
    hash::{BuildHasher as _, Hash as _, Hasher as _},
    sync::{Arc, PoisonError, RwLock},
};

use hashbrown::{DefaultHashBuilder, HashTable};

/// The value of the labels of all series beyond the limit.
pub(super) const OTHER: &str = "other";
/// Longer values of labels count as [`OTHER`].
const MAX_LABEL_BYTES: usize = 128;

/// The series of one metric, by the values of their `N` labels.
#[derive(Debug)]
pub(super) struct SeriesTable<const N: usize, V> {
    hasher: DefaultHashBuilder,
    series: RwLock<HashTable<Arc<Series<N, V>>>>,
    max_series: usize,
}

/// A series: the values of its labels, and what is counted.
#[derive(Debug)]
pub(super) struct Series<const N: usize, V> {
    pub(super) labels: [Box<str>; N],
    pub(super) value: V,
}

impl<const N: usize, V: Default> SeriesTable<N, V> {
    pub(super) fn new(max_series: usize) -> Self {
        Self { hasher: DefaultHashBuilder::default(), series: RwLock::default(), max_series }
    }

    /// Counts in the series with these labels.
    pub(super) fn update<R>(&self, labels: [&str; N], count: impl FnOnce(&V) -> R) -> R {
        let hash = self.hash(labels);
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = series.find(hash, |series| has_labels(series, labels)) {
            return count(&found.value);
        }
        drop(series);
        count(&self.insert(labels).value)
    }

    /// All series.
    pub(super) fn all(&self) -> Vec<Arc<Series<N, V>>> {
        self.series.read().unwrap_or_else(PoisonError::into_inner).iter().map(Arc::clone).collect()
    }

    /// Adds a series, unless it exists by now or there is no room for it.
    fn insert(&self, labels: [&str; N]) -> Arc<Series<N, V>> {
        // Values that are cleaned never get a series of their own, or two series could have the same labels.
        let clean = labels.map(clean_label);
        let clean = clean.each_ref().map(|label| &**label);
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = series.len() >= self.max_series;
        let find = |series: &HashTable<Arc<Series<N, V>>>, labels| {
            series.find(self.hash(labels), |series| has_labels(series, labels)).map(Arc::clone)
        };
        let labels = match find(&series, clean) {
            Some(found) => return found,
            None if is_full => [OTHER; N],
            None => clean,
        };
        find(&series, labels).unwrap_or_else(|| {
            let added = Arc::new(Series { labels: labels.map(Box::from), value: V::default() });
            let rehash =
                |series: &Arc<Series<N, V>>| self.hash(series.labels.each_ref().map(|label| &**label));
            series.insert_unique(self.hash(labels), Arc::clone(&added), rehash);
            added
        })
    }

    fn hash(&self, labels: [&str; N]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        for label in labels {
            label.hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn has_labels<const N: usize, V>(series: &Series<N, V>, labels: [&str; N]) -> bool {
    series.labels.iter().zip(labels).all(|(known, label)| **known == *label)
}

/// The value of a label without control characters and without characters that change how text is displayed.
fn clean_label(label: &str) -> Cow<'_, str> {
    if label.len() > MAX_LABEL_BYTES { Cow::Borrowed(OTHER) } else { toolyard_core::escape_unsafe(label) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    type Counters = SeriesTable<2, AtomicU64>;

    fn add(counters: &Counters, labels: [&str; 2]) {
        counters.update(labels, |count| count.fetch_add(1, Ordering::Relaxed));
    }

    fn counted(counters: &Counters) -> Vec<(String, String, u64)> {
        let count = |series: &Arc<Series<2, AtomicU64>>| {
            let [one, two] = series.labels.each_ref().map(ToString::to_string);
            (one, two, series.value.load(Ordering::Relaxed))
        };
        let mut counts: Vec<_> = counters.all().iter().map(count).collect();
        counts.sort();
        counts
    }

    #[test]
    fn series_beyond_the_limit_are_counted_together() {
        let counters = Counters::new(3);
        for number in 0..100 {
            add(&counters, ["tool", &number.to_string()]);
        }
        add(&counters, ["tool", "1"]);
        let expected = [("other", "other", 97), ("tool", "0", 1), ("tool", "1", 2), ("tool", "2", 1)];
        assert_eq!(counted(&counters), expected.map(|(one, two, count)| (one.into(), two.into(), count)));
    }

    #[test]
    fn hostile_names_share_the_series_of_their_cleaned_form() {
        let counters = Counters::new(10);
        let long = "x".repeat(1 << 20);
        for _ in 0..2 {
            add(&counters, ["a\u{202e}b\u{1b}[2J", "s"]);
            add(&counters, [&long, "s"]);
        }
        let counts = counted(&counters);
        assert_eq!(counts.len(), 2, "{counts:?}");
        assert!(
            counts.iter().all(|(one, _, count)| *count == 2 && one.len() <= MAX_LABEL_BYTES),
            "{counts:?}"
        );
        assert!(counts.iter().all(|(one, ..)| !one.contains(['\u{1b}', '\u{202e}'])), "{counts:?}");
    }
}
