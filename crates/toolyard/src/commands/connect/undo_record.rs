//! The record of a change to a client's file, so that it can be undone byte for byte. It is encrypted like stored secrets,
//! because the removed servers may hold secrets.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard::settings::ProfileSettings;
use toolyard_core::ContentHash;

use crate::{
    config::{StoredSecrets, files},
    error::CliError,
};

/// The folder of records in the data folder.
pub(super) const RECORD_FOLDER: &str = "connect";

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

    pub(super) fn read(path: &Path, secrets: &StoredSecrets) -> Result<Option<Self>, CliError> {
        let Some(text) = files::read_if_exists(path)? else { return Ok(None) };
        let invalid = |error: serde_json::Error| CliError::file("read", path, error);
        if let Some(content) = secrets.decrypt_file(path, &purpose(path), &text)? {
            return serde_json::from_slice(&content).map(Some).map_err(invalid);
        }
        // An earlier version did not encrypt records.
        let record: Self = serde_json::from_str(&text).map_err(invalid)?;
        record.write(path, secrets)?;
        Ok(Some(record))
    }

    /// Writes the record to an encrypted file.
    pub(super) fn write(&self, path: &Path, secrets: &StoredSecrets) -> Result<(), CliError> {
        let content = serde_json::to_vec(self).map_err(|error| CliError::file("write", path, error))?;
        Ok(secrets.write_file(path, &purpose(path), &content)?)
    }

    /// The original text, if `current` is the text that was written.
    pub(super) fn original(&self, current: &str) -> Option<String> {
        self.patch.as_ref()?.revert(current)
    }
}

/// The records in a data folder, each with the purpose that it is encrypted for.
pub(in crate::commands) fn record_files(data_folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(data_folder.join(RECORD_FOLDER)).into_iter().flatten().flatten();
    let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let paths = entries.map(|entry| entry.path()).filter(is_record);
    let with_purpose = |path: PathBuf| {
        let purpose = purpose(&path);
        (path, purpose)
    };
    paths.map(with_purpose).collect()
}

/// Binds a record to the client that its file is named after.
fn purpose(path: &Path) -> String {
    format!("undo record {}", path.file_name().unwrap_or_default().to_string_lossy())
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
