//! Errors of lexicons.

use std::path::PathBuf;

use super::format::MAX_LEXICON_BYTES;

/// A lexicon cannot be built or used.
#[derive(Debug, thiserror::Error)]
pub enum LexiconError {
    /// The file cannot be read.
    #[error("failed to read the lexicon {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// The file does not begin like a lexicon.
    #[error("the file is not a lexicon")]
    NotALexicon,
    /// Another version of the program wrote the file.
    #[error(
        "the lexicon has format version {found}, but this program supports version {supported}; add the lexicon again"
    )]
    UnsupportedVersion {
        /// Version of the file.
        found: u32,
        /// Supported version.
        supported: u32,
    },
    /// The checksum, a length or the origin in the file is wrong.
    #[error("the lexicon is damaged ({0}); add it again")]
    Damaged(&'static str),
    /// The lexicon exceeds the size limit.
    #[error("a lexicon of {0} bytes exceeds the limit of {MAX_LEXICON_BYTES} bytes")]
    TooLarge(u64),
    /// The dictionary has no usable entry.
    #[error("the dictionary has no entries; expected lines such as: 刪除 删除 [shan1 chu2] /to delete/")]
    NoEntries,
}
