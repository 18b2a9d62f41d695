//! The record of a change to a client's file, so that it can be undone byte for byte.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard::settings::ProfileSettings;
use toolyard_core::ContentHash;

use crate::{config::files, error::CliError};

/// A change to a client's file, with the servers that were removed from it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UndoRecord {
    version: u32,
    pub(super) file: PathBuf,
    /// Whether the file existed before.
    pub(super) existed: bool,
    /// The removed servers.
    pub(super) moved: Map<String, Value>,
    /// The difference to the original file; `None` if it was changed in between.
    pub(super) patch: Option<TextPatch>,
    /// The profile that was created for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<CreatedProfile>,
}

/// A profile in a settings file, as it was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CreatedProfile {
    pub(super) settings_file: PathBuf,
    pub(super) name: String,
    pub(super) content: ProfileSettings,
}

/// The replacement of one range of a text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TextPatch {
    /// Hashes of the whole text.
    before: ContentHash,
    after: ContentHash,
    /// Byte offset of the range.
    at: usize,
    removed: String,
    inserted: String,
}

impl UndoRecord {
    pub(super) fn new(
        file: &Path,
        existed: bool,
        moved: Map<String, Value>,
        patch: Option<TextPatch>,
    ) -> Self {
        Self { version: 1, file: file.to_owned(), existed, moved, patch, profile: None }
    }

    pub(super) fn with_profile(self, profile: Option<CreatedProfile>) -> Self {
        Self { profile, ..self }
    }

    pub(super) fn read(path: &Path) -> Result<Option<Self>, CliError> {
        let Some(text) = files::read_if_exists(path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| CliError::file("read", path, error))
    }

    /// Writes the record to an owner-only file: removed servers may hold secrets.
    pub(super) fn write(&self, path: &Path) -> Result<(), CliError> {
        files::write_json(path, self, files::Access::OwnerOnly)
    }

    /// The original text, if `current` is the text that was written.
    pub(super) fn original(&self, current: &str) -> Option<String> {
        self.patch.as_ref()?.revert(current)
    }
}

impl TextPatch {
    pub(super) fn between(before: &str, after: &str) -> Self {
        let is_same = |(one, other): &((usize, char), char)| one.1 == *other;
        let prefix: usize = before
            .char_indices()
            .zip(after.chars())
            .take_while(is_same)
            .map(|((_, c), _)| c.len_utf8())
            .sum();
        let (old, new) = (before.get(prefix..).unwrap_or_default(), after.get(prefix..).unwrap_or_default());
        let suffix: usize = old
            .chars()
            .rev()
            .zip(new.chars().rev())
            .take_while(|(one, other)| one == other)
            .map(|(c, _)| c.len_utf8())
            .sum();
        let middle = |text: &str| text.get(..text.len() - suffix).unwrap_or_default().to_owned();
        Self {
            before: ContentHash::of(before),
            after: ContentHash::of(after),
            at: prefix,
            removed: middle(old),
            inserted: middle(new),
        }
    }

    /// The text before the patch; `None` if `after` is not the text after it.
    fn revert(&self, after: &str) -> Option<String> {
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
        fn a_patch_is_reverted_exactly(before in "[abé\\n]{0,20}", after in "[abé\\n]{0,20}") {
            let patch = TextPatch::between(&before, &after);
            prop_assert_eq!(patch.revert(&after), Some(before));
        }

        #[test]
        fn a_different_text_is_not_reverted(before in "[ab]{0,9}", after in "[ab]{0,9}", other in "[ab]{0,9}") {
            prop_assume!(other != after);
            prop_assert_eq!(TextPatch::between(&before, &after).revert(&other), None);
        }
    }
}
