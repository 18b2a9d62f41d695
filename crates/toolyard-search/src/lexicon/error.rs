//! Errors of lexicons.

use std::path::PathBuf;

use super::format::MAX_LEXICON_BYTES;

/// A lexicon cannot be built or used.
#[derive(Debug, thiserror::Error)]
pub enum LexiconError {
    /// The file of the lexicon does not exist or cannot be read.
    ///
    /// Remedy: add it again: `toolyard lexicon add zh`.
    #[error("failed to read the lexicon {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// The file in the folder of lexicons is something else.
    ///
    /// Remedy: remove the file, and add the lexicon again: `toolyard lexicon add zh`.
    #[error("the file is not a lexicon")]
    NotALexicon,
    /// Another version of Toolyard wrote the lexicon.
    ///
    /// Remedy: add it again: `toolyard lexicon add zh`.
    #[error(
        "the lexicon has format version {found}, but this program supports version {supported}; add the lexicon again"
    )]
    UnsupportedVersion {
        /// Version of the file.
        found: u32,
        /// Supported version.
        supported: u32,
    },
    /// The checksum, a length or the origin in the file of the lexicon is wrong.
    ///
    /// Remedy: add it again: `toolyard lexicon add zh`.
    #[error("the lexicon is damaged ({0}); add it again")]
    Damaged(&'static str),
    /// The dictionary is too large for a lexicon.
    ///
    /// Remedy: use CC-CEDICT, or a smaller dictionary in its format.
    #[error("a lexicon of {0} bytes exceeds the limit of {MAX_LEXICON_BYTES} bytes")]
    TooLarge(u64),
    /// The file has no usable line of a dictionary.
    ///
    /// Remedy: pass CC-CEDICT: plain text, `.gz`, wheel, zip or tgz.
    #[error("the dictionary has no entries; expected lines such as: 刪除 删除 [shan1 chu2] /to delete/")]
    NoEntries,
}
