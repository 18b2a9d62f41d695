//! What was done to a client's file, so that it can be undone exactly.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard_core::ContentHash;

use crate::{
    failure::{Code, Failure},
    files,
};

/// What was done to a client's file. What was taken out of it is kept here, and nowhere else.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    /// The file.
    pub(super) file: PathBuf,
    /// Whether it was there before.
    pub(super) existed: bool,
    /// The servers that were taken out.
    pub(super) moved: Map<String, Value>,
    /// The one change between what was there and what was written; none where other changes came in between.
    pub(super) patch: Option<Patch>,
}

/// One change of a text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Patch {
    before: ContentHash,
    after: ContentHash,
    at: usize,
    removed: String,
    inserted: String,
}

impl Record {
    pub(super) fn new(file: &Path, existed: bool, moved: Map<String, Value>, patch: Option<Patch>) -> Self {
        Self { version: 1, file: file.to_owned(), existed, moved, patch }
    }

    /// The record of a client; none where nothing was done.
    pub(super) fn read(place: &Path) -> Result<Option<Self>, Failure> {
        let unusable = |error: &dyn std::fmt::Display| {
            Failure::new(Code::Failed, format!("failed to read {}: {error}", place.display()))
        };
        match std::fs::read_to_string(place) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| unusable(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&error)),
        }
    }

    /// Keeps the record where only its owner reads it: what was taken out may hold secrets.
    pub(super) fn keep(&self, place: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string());
        let kept = text.and_then(|text| {
            files::write(place, &text, files::Readers::Owner).map_err(|error| error.to_string())
        });
        kept.map_err(|error| {
            Failure::new(Code::Failed, format!("failed to write {}: {error}", place.display()))
        })
    }

    /// What was there before, if what is there now is what was written.
    pub(super) fn original(&self, now: &str) -> Option<String> {
        self.patch.as_ref()?.undone(now)
    }
}

impl Patch {
    /// The change between two texts.
    pub(super) fn between(before: &str, after: &str) -> Self {
        let same = |(one, other): &((usize, char), char)| one.1 == *other;
        let front: usize =
            before.char_indices().zip(after.chars()).take_while(same).map(|((_, c), _)| c.len_utf8()).sum();
        let (old, new) = (before.get(front..).unwrap_or_default(), after.get(front..).unwrap_or_default());
        let back: usize = old
            .chars()
            .rev()
            .zip(new.chars().rev())
            .take_while(|(one, other)| one == other)
            .map(|(c, _)| c.len_utf8())
            .sum();
        let middle = |text: &str| text.get(..text.len() - back).unwrap_or_default().to_owned();
        Self {
            before: ContentHash::of(before),
            after: ContentHash::of(after),
            at: front,
            removed: middle(old),
            inserted: middle(new),
        }
    }

    /// The text before the change; none if this is not the text after it.
    fn undone(&self, after: &str) -> Option<String> {
        if ContentHash::of(after) != self.after {
            return None;
        }
        let (front, rest) = after.split_at_checked(self.at)?;
        let before = format!("{front}{}{}", self.removed, rest.strip_prefix(self.inserted.as_str())?);
        (ContentHash::of(&before) == self.before).then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_change_is_undone_exactly(before in "[abé\\n]{0,20}", after in "[abé\\n]{0,20}") {
            let patch = Patch::between(&before, &after);
            prop_assert_eq!(patch.undone(&after), Some(before));
        }

        #[test]
        fn another_text_is_not_touched(before in "[ab]{0,9}", after in "[ab]{0,9}", other in "[ab]{0,9}") {
            prop_assume!(other != after);
            prop_assert_eq!(Patch::between(&before, &after).undone(&other), None);
        }
    }
}
