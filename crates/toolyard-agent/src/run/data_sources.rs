//! [`DataSources`]: where the non-public data in a text may come from.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

/// The sources of the non-public data that a text may contain; empty if the text contains none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DataSources(BTreeSet<String>);

impl DataSources {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether no source but this one contributed.
    pub fn is_within(&self, source: &str) -> bool {
        self.0.iter().all(|other| other == source)
    }

    /// Adds a source.
    pub fn insert(&mut self, source: &str) {
        self.0.insert(source.to_owned());
    }

    /// Adds other sources.
    pub fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Whether it has all sources of `others`.
    pub fn includes(&self, others: &Self) -> bool {
        others.0.is_subset(&self.0)
    }
}

impl fmt::Display for DataSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
    }
}
