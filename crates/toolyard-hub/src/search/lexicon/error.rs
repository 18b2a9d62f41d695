//! What can be wrong with a lexicon.

use std::path::PathBuf;

/// A lexicon that cannot be built or used.
#[derive(Debug, thiserror::Error)]
pub enum LexiconError {
    /// The file cannot be read.
    #[error("failed to read the lexicon {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The file is something else.
    #[error("this is not a lexicon")]
    NotALexicon,
    /// A later version of the program wrote it.
    #[error("this lexicon has the form {found}, and this program knows {known}; add it anew")]
    OtherForm {
        /// What it has.
        found: u32,
        /// What we know.
        known: u32,
    },
    /// It is not what was written.
    #[error("this lexicon is damaged ({0}); add it anew")]
    Damaged(&'static str),
    /// More than a lexicon can hold.
    #[error("a lexicon of {0} bytes is too large; {LARGEST} is the most")]
    TooLarge(u64),
    /// Nothing in it can be used.
    #[error(
        "no entry of a dictionary was found; it should have lines such as: 刪除 删除 [shan1 chu2] /to delete/"
    )]
    NoEntries,
}

/// No lexicon is larger than this, whatever its header says.
pub(super) const LARGEST: u64 = 64 << 20;
