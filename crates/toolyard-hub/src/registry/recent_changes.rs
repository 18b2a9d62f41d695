//! [`RecentChanges`]: which names the latest changes of the registry touched, so that what is derived from a snapshot can be
//! brought up to date without looking at every tool.

use std::{collections::HashSet, sync::Arc};

/// Changes that are remembered.
const MAX_CHANGES: usize = 64;
/// A change of more names counts as a change of all names: following it name by name would save nothing.
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

/// The names of one change, each once, up to the limit.
#[derive(Debug, Default)]
pub(crate) struct ChangedNames(HashSet<Arc<str>>);

impl ChangedNames {
    pub(crate) fn add<'a>(&mut self, names: impl IntoIterator<Item = &'a Arc<str>>) {
        for name in names {
            if self.0.len() > MAX_NAMES_PER_CHANGE {
                return;
            }
            if !self.0.contains(name) {
                self.0.insert(Arc::clone(name));
            }
        }
    }
}

impl RecentChanges {
    /// Adds a change of these names.
    pub(crate) fn add(&mut self, names: ChangedNames) {
        self.push((names.0.len() <= MAX_NAMES_PER_CHANGE).then(|| names.0.into_iter().collect()));
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

    fn add(changes: &mut RecentChanges, names: &[&str]) {
        let names: Vec<Arc<str>> = names.iter().map(|name| Arc::from(*name)).collect();
        let mut changed = ChangedNames::default();
        changed.add(&names);
        changes.add(changed);
    }

    fn changed(changes: &RecentChanges, earlier: &RecentChanges) -> Option<Vec<String>> {
        changes.names_since(earlier).map(|names| names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_names_of_later_changes_are_listed_once() {
        let mut changes = RecentChanges::default();
        add(&mut changes, &["a"]);
        let earlier = changes.clone();
        assert_eq!(changed(&changes, &earlier), Some(Vec::new()));
        add(&mut changes, &["c", "b"]);
        add(&mut changes, &["b"]);
        assert_eq!(changed(&changes, &earlier), Some(vec!["b".to_owned(), "c".to_owned()]));
        assert_eq!(changed(&earlier, &changes), None, "a later snapshot says nothing about an earlier one");
    }

    #[test]
    fn changes_that_are_forgotten_or_of_all_names_are_unknown() {
        let (start, mut changes) = (RecentChanges::default(), RecentChanges::default());
        (0..MAX_CHANGES).for_each(|_| add(&mut changes, &["a"]));
        assert_eq!(changed(&changes, &start), Some(vec!["a".to_owned()]));
        add(&mut changes, &["a"]);
        assert_eq!(changed(&changes, &start), None);
        let earlier = changes.clone();
        changes.add_all_names();
        assert_eq!(changed(&changes, &earlier), None);
    }

    #[test]
    fn a_change_of_too_many_names_is_one_of_all() {
        let names: Vec<String> = (0..=MAX_NAMES_PER_CHANGE).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (start, mut changes) = (RecentChanges::default(), RecentChanges::default());
        let few = &names[1..];
        add(&mut changes, &[few, few].concat());
        assert_eq!(changed(&changes, &start).map(|names| names.len()), Some(MAX_NAMES_PER_CHANGE));
        add(&mut changes, &names);
        assert_eq!(changed(&changes, &start), None);
    }
}
