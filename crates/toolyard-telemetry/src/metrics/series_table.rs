//! [`SeriesTable`]: the series of one metric by the values of their labels. Their number is limited, because names of tools and
//! servers come from outside.

use std::{
    borrow::Cow,
    hash::{BuildHasher as _, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::RwLock;

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
    limits: LabelLimits,
    /// How often something was counted in a series for [`OTHER`] values because there was no room for its own.
    overflows: AtomicU64,
}

/// Which labels keep their value when there is no room for a series of its own.
#[derive(Debug, Clone, Copy, Default)]
struct LabelLimits {
    /// The position of a label with values from outside, such as error codes. It is given up first.
    open: Option<usize>,
    /// The position of a label whose values share the room, and how many series each may have.
    share: Option<(usize, usize)>,
}

/// A series: the values of its labels, and what is counted.
#[derive(Debug)]
pub(super) struct Series<const N: usize, V> {
    pub(super) labels: [Box<str>; N],
    pub(super) value: V,
}

impl<const N: usize, V: Default> SeriesTable<N, V> {
    pub(super) fn new(max_series: usize) -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            series: RwLock::default(),
            max_series,
            limits: LabelLimits::default(),
            overflows: AtomicU64::new(0),
        }
    }

    /// Gives up the value of this label first when there is no room.
    pub(super) fn with_open_label(mut self, position: usize) -> Self {
        self.limits.open = Some(position);
        self
    }

    /// Limits the series of each value of this label, so that one value leaves room for the others.
    pub(super) fn with_share(mut self, position: usize, max_series: usize) -> Self {
        self.limits.share = Some((position, max_series));
        self
    }

    /// How often there was no room.
    pub(super) fn overflows(&self) -> u64 {
        self.overflows.load(Ordering::Relaxed)
    }

    /// Whether there is no room for a new series.
    pub(super) fn is_full(&self) -> bool {
        self.series.read().len() >= self.max_series
    }

    /// Removes the series whose label at this position is not kept.
    pub(super) fn retain(&self, position: usize, is_kept: impl Fn(&str) -> bool) {
        let mut series = self.series.write();
        series.retain(|series| series.labels.get(position).is_none_or(|label| is_kept(label)));
    }

    /// Counts in the series with these labels.
    pub(super) fn update<R>(&self, labels: [&str; N], count: impl FnOnce(&V) -> R) -> R {
        let hash = self.hash(labels);
        let series = self.series.read();
        if let Some(found) = series.find(hash, |series| has_labels(series, labels)) {
            return count(&found.value);
        }
        drop(series);
        count(&self.insert(labels).value)
    }

    /// All series.
    pub(super) fn all(&self) -> Vec<Arc<Series<N, V>>> {
        self.series.read().iter().map(Arc::clone).collect()
    }

    /// Adds a series, unless it exists by now or there is no room for it.
    fn insert(&self, labels: [&str; N]) -> Arc<Series<N, V>> {
        // Values that are cleaned never get a series of their own, or two series could have the same labels.
        let clean = labels.map(clean_label);
        let clean = clean.each_ref().map(|label| &**label);
        let mut series = self.series.write();
        let find = |series: &HashTable<Arc<Series<N, V>>>, labels| {
            series.find(self.hash(labels), |series| has_labels(series, labels)).map(Arc::clone)
        };
        if let Some(found) = find(&series, clean) {
            return found;
        }
        let labels = self.labels_with_room(&series, clean);
        find(&series, labels).unwrap_or_else(|| {
            let added = Arc::new(Series { labels: labels.map(Box::from), value: V::default() });
            let rehash =
                |series: &Arc<Series<N, V>>| self.hash(series.labels.each_ref().map(|label| &**label));
            series.insert_unique(self.hash(labels), Arc::clone(&added), rehash);
            added
        })
    }

    /// The labels of a new series, with as few values given up as there is room.
    fn labels_with_room<'a>(
        &self,
        series: &HashTable<Arc<Series<N, V>>>,
        labels: [&'a str; N],
    ) -> [&'a str; N] {
        let has_share = self.limits.share.is_none_or(|(position, max_series)| {
            let of_same = series.iter().filter(|known| {
                known.labels.get(position).map(|label| &**label) == labels.get(position).copied()
            });
            of_same.count() < max_series
        });
        if has_share && series.len() < self.max_series {
            return labels;
        }
        self.overflows.fetch_add(1, Ordering::Relaxed);
        // The other labels have few values each.
        let max_reduced = self.max_series.saturating_add(self.max_series / 2);
        match self.limits.open {
            Some(open) if series.len() < max_reduced => {
                let mut reduced = labels;
                // A series without this label, such as that of successes, is one of few anyway.
                if let Some(label) = reduced.get_mut(open).filter(|label| !label.is_empty()) {
                    *label = OTHER;
                }
                reduced
            }
            _ => [OTHER; N],
        }
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
    fn a_server_with_many_errors_leaves_room_and_keeps_its_name() {
        let counters = Counters::new(100).with_open_label(1).with_share(0, 10);
        for number in 0..1_000 {
            add(&counters, ["hostile", &number.to_string()]);
        }
        add(&counters, ["good", ""]);
        add(&counters, ["good", "7"]);
        add(&counters, ["hostile", ""]);
        let counts = counted(&counters);
        let count_of = |one: &str, two: &str| {
            counts.iter().find(|(first, second, _)| first == one && second == two).map(|(.., count)| *count)
        };
        assert_eq!((count_of("hostile", "other"), counters.overflows()), (Some(990), 991));
        assert_eq!((count_of("good", ""), count_of("good", "7")), (Some(1), Some(1)));
        assert_eq!((count_of("hostile", ""), count_of("other", "other")), (Some(1), None));
        assert_eq!(counts.len(), 10 + 1 + 1 + 2);
    }

    #[test]
    fn there_is_room_again_once_servers_are_removed() {
        let counters = Counters::new(10).with_open_label(1);
        for number in 0..20 {
            add(&counters, [&number.to_string(), "x"]);
        }
        assert!(counters.is_full());
        counters.retain(0, |server| server == "3");
        assert!(!counters.is_full());
        add(&counters, ["new", "x"]);
        assert_eq!(counted(&counters), [("3".into(), "x".into(), 1), ("new".into(), "x".into(), 1)]);
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
