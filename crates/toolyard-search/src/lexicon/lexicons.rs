//! Combines lexicons: the built-in table first, then files, which are loaded on the first Chinese text.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{
    built_in,
    script::is_han,
    segmenter::segment,
    stored_lexicon::StoredLexicon,
    translation::{Lexicon, WordTranslation},
};

/// The built-in lexicon and added ones. Clones share the data.
#[derive(Debug, Clone, Default)]
pub struct Lexicons(Arc<LexiconSet>);

#[derive(Debug, Default)]
struct LexiconSet {
    files: Vec<PathBuf>,
    loaded: OnceLock<Vec<StoredLexicon>>,
}

impl Lexicons {
    /// The built-in lexicon alone.
    pub fn built_in() -> Self {
        Self::default()
    }

    /// The built-in lexicon and these files, which are read on first use. Unusable files are skipped with a warning.
    pub fn with_files(files: Vec<PathBuf>) -> Self {
        Self(Arc::new(LexiconSet { files, loaded: OnceLock::new() }))
    }

    /// The built-in lexicon and these.
    pub fn with_lexicons(lexicons: Vec<StoredLexicon>) -> Self {
        Self(Arc::new(LexiconSet { files: Vec::new(), loaded: OnceLock::from(lexicons) }))
    }

    fn loaded(&self) -> &[StoredLexicon] {
        self.0.loaded.get_or_init(|| self.0.files.iter().filter_map(|file| open_or_warn(file)).collect())
    }
}

fn open_or_warn(file: &Path) -> Option<StoredLexicon> {
    StoredLexicon::open(file)
        .inspect_err(|error| tracing::warn!(file = %file.display(), %error, "skipping unusable lexicon"))
        .ok()
}

impl Lexicon for Lexicons {
    fn translate(&self, text: &str) -> Vec<WordTranslation> {
        if !text.chars().any(is_han) {
            return Vec::new();
        }
        let lexicons: Vec<&StoredLexicon> = built_in::table().into_iter().chain(self.loaded()).collect();
        translate(&lexicons, text)
    }
}

impl Lexicon for StoredLexicon {
    fn translate(&self, text: &str) -> Vec<WordTranslation> {
        translate(&[self], text)
    }
}

/// Translates the words of a text. Glosses of earlier lexicons come first. A word that a lexicon lists without glosses is a stop
/// word: later lexicons are not asked.
fn translate(lexicons: &[&StoredLexicon], text: &str) -> Vec<WordTranslation> {
    let mut translations = Vec::new();
    for segment in segment(lexicons, text) {
        let mut glosses: Vec<Vec<String>> = Vec::new();
        let is_single = text.get(segment.range.clone()).is_some_and(|word| word.chars().nth(1).is_none());
        let known = lexicons.iter().zip(segment.word_ids).filter_map(|(lexicon, id)| Some((lexicon, id?)));
        // A dictionary has many senses of a single character, most of them wrong: only the first lexicon, which is
        // made for requests, translates those.
        for (lexicon, id) in known.take(if is_single { 1 } else { usize::MAX }) {
            if is_single && !lexicons.first().is_some_and(|first| std::ptr::eq(*first, *lexicon)) {
                break;
            }
            let added = lexicon.glosses(id);
            if added.is_empty() {
                break;
            }
            for gloss in added {
                if !glosses.contains(&gloss) {
                    glosses.push(gloss);
                }
            }
        }
        if !glosses.is_empty() {
            translations.push(WordTranslation { range: segment.range, glosses });
        }
    }
    translations
}

#[cfg(test)]
#[path = "lexicons_tests.rs"]
mod tests;
