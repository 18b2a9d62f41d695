//! [`RecentChanges`]: which names the latest changes of the registry touched, so that what is derived from a snapshot can be
//! brought up to date without looking at every tool.

use std::sync::Arc;

/// Changes that are remembered.
const MAX_CHANGES: usize = 64;
/// Who has to look at more names than this may as well look at all.
const MAX_NAMES_PER_CHANGE: usize = 10_000;

/// The latest changes up to a snapshot, oldest first. Each has a number, which grows by one per change.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentChanges {
    last: u64,
    /// The latest is `last`.
    changes: Arc<[Change]>,
}

/// The names of one change; `None` if it may have changed all.
type Change = Option<Arc<[Arc<str>]>>;

impl RecentChanges {
    /// Adds a change of these names.
    pub(crate) fn add(&mut self, names: Vec<Arc<str>>) {
        self.push((names.len() <= MAX_NAMES_PER_CHANGE).then(|| names.into()));
    }

    /// Adds a change of all names.
    pub(crate) fn add_all_names(&mut self) {
        self.push(None);
    }

    fn push(&mut self, change: Change) {
        let surplus = (self.changes.len() + 1).saturating_sub(MAX_CHANGES);
        self.changes = self.changes.iter().skip(surplus).cloned().chain([change]).collect();
        self.last += 1;
    }

    /// The names that changed after `earlier`; `None` if that is not known, or if all may have.
    pub(crate) fn names_since(&self, earlier: &Self) -> Option<Vec<&Arc<str>>> {
        let count = usize::try_from(self.last.checked_sub(earlier.last)?).ok()?;
        let first = self.changes.len().checked_sub(count)?;
        let mut names = Vec::new();
        for change in self.changes.iter().skip(first) {
            names.extend(change.as_ref()?.iter());
        }
        names.sort_unstable();
        names.dedup();
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(changes: &RecentChanges, earlier: &RecentChanges) -> Option<Vec<String>> {
        changes.names_since(earlier).map(|names| names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_names_of_later_changes_are_listed_once() {
        let mut changes = RecentChanges::default();
        changes.add(vec!["a".into()]);
        let earlier = changes.clone();
        assert_eq!(changed(&changes, &earlier), Some(Vec::new()));
        changes.add(vec!["c".into(), "b".into()]);
        changes.add(vec!["b".into()]);
        assert_eq!(changed(&changes, &earlier), Some(vec!["b".to_owned(), "c".to_owned()]));
        assert_eq!(changed(&earlier, &changes), None, "a later snapshot says nothing about an earlier one");
    }

    #[test]
    fn changes_that_are_forgotten_or_of_all_names_are_unknown() {
        let (start, mut changes) = (RecentChanges::default(), RecentChanges::default());
        (0..MAX_CHANGES).for_each(|_| changes.add(vec!["a".into()]));
        assert_eq!(changed(&changes, &start), Some(vec!["a".to_owned()]));
        changes.add(vec!["a".into()]);
        assert_eq!(changed(&changes, &start), None);
        let earlier = changes.clone();
        changes.add_all_names();
        assert_eq!(changed(&changes, &earlier), None);
    }
}
