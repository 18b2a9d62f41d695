//! All lexicons together: our own table first, files behind it, read when the first Chinese text comes by.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{
    BuiltInLexicon, Lexicon, LexiconError, Meaning, StoredLexicon, built_in, form::is_han, segment::words,
};

/// What a search asks: the built-in table and the lexicons that were added. Cloning it costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Lexicons(Arc<Sources>);

#[derive(Debug, Default)]
struct Sources {
    files: Vec<PathBuf>,
    read: OnceLock<Vec<StoredLexicon>>,
}

impl Lexicons {
    /// The built-in table alone.
    pub fn built_in() -> Self {
        Self::default()
    }

    /// The built-in table and these files, which are read when they are first needed. One that cannot be used is left out,
    /// and the log says so.
    pub fn with_files(files: Vec<PathBuf>) -> Self {
        Self(Arc::new(Sources { files, read: OnceLock::new() }))
    }

    /// The built-in table and these lexicons.
    pub fn with_lexicons(lexicons: Vec<StoredLexicon>) -> Self {
        Self(Arc::new(Sources { files: Vec::new(), read: OnceLock::from(lexicons) }))
    }

    fn read(&self) -> &[StoredLexicon] {
        self.0.read.get_or_init(|| self.0.files.iter().filter_map(|file| usable(file)).collect())
    }
}

fn usable(file: &Path) -> Option<StoredLexicon> {
    let told = |error: &LexiconError| tracing::warn!(file = %file.display(), %error, "a lexicon is not used");
    StoredLexicon::open(file).inspect_err(told).ok()
}

impl Lexicon for Lexicons {
    fn meanings(&self, text: &str) -> Vec<Meaning> {
        if !text.chars().any(is_han) {
            return Vec::new();
        }
        let dictionaries: Vec<&StoredLexicon> = built_in::table().into_iter().chain(self.read()).collect();
        meanings(&dictionaries, text)
    }
}

impl Lexicon for BuiltInLexicon {
    fn meanings(&self, text: &str) -> Vec<Meaning> {
        if !text.chars().any(is_han) {
            return Vec::new();
        }
        meanings(&built_in::table().into_iter().collect::<Vec<_>>(), text)
    }
}

/// What the words of a text mean. Dictionaries that stand further ahead speak first; what they know to mean nothing means
/// nothing.
pub(super) fn meanings(dictionaries: &[&StoredLexicon], text: &str) -> Vec<Meaning> {
    let mut meanings = Vec::new();
    for word in words(dictionaries, text) {
        let mut glosses: Vec<Vec<String>> = Vec::new();
        let known = dictionaries
            .iter()
            .zip(word.numbers)
            .filter_map(|(dictionary, number)| Some((dictionary, number?)));
        for (dictionary, number) in known {
            let said = dictionary.glosses(number);
            if said.is_empty() {
                break;
            }
            for gloss in said {
                if !glosses.contains(&gloss) {
                    glosses.push(gloss);
                }
            }
        }
        if !glosses.is_empty() {
            meanings.push(Meaning { word: word.place, glosses });
        }
    }
    meanings
}

#[cfg(test)]
#[path = "lexicons_tests.rs"]
mod tests;
