//! Origin and licence of a lexicon.

use serde::{Deserialize, Serialize};

/// Where a lexicon comes from, and its licence notice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// Language of its words, such as `zh`.
    pub language: String,
    /// Name of the dictionary.
    pub name: String,
    /// Where the dictionary was obtained, such as a URL.
    pub source: String,
    /// Licence of the dictionary, and so of the lexicon.
    pub licence: String,
    /// Authors, and what was changed.
    pub attribution: String,
}
