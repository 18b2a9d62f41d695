//! The words of the glossary, compiled into the program and read on first use.

use std::{collections::HashMap, sync::LazyLock};

/// No word of the glossary is longer.
pub(super) const MAX_WORD_CHARS: usize = 8;

const CHINESE: &str = include_str!("zh.txt");

/// Words in simplified spelling with their glosses.
#[derive(Debug, Default)]
pub(super) struct Glossary {
    /// A word without glosses is a stop word.
    words: HashMap<String, Vec<Vec<String>>>,
    /// Traditional characters and their simplified form.
    simplifications: HashMap<char, char>,
}

impl Glossary {
    pub(super) fn built_in() -> &'static Self {
        static GLOSSARY: LazyLock<Glossary> = LazyLock::new(|| Glossary::parse(CHINESE));
        &GLOSSARY
    }

    /// Parses the table. A line is `word word = gloss; gloss`; words without glosses are stop words. A line that starts with
    /// `~` has pairs of a traditional character and its simplified form.
    fn parse(text: &str) -> Self {
        let mut glossary = Self::default();
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for pairs in lines().filter_map(|line| line.strip_prefix('~')) {
            glossary.simplifications.extend(pairs.split_whitespace().filter_map(parse_pair));
        }
        for (spellings, translations) in lines().filter_map(|line| line.split_once('=')) {
            for spelling in spellings.split_whitespace() {
                let word = spelling.chars().map(|letter| glossary.simplified(letter)).collect();
                let glosses = glossary.words.entry(word).or_default();
                for gloss in translations.split(';') {
                    let gloss: Vec<String> = gloss.split_whitespace().map(str::to_owned).collect();
                    if !gloss.is_empty() && !glosses.contains(&gloss) {
                        glosses.push(gloss);
                    }
                }
            }
        }
        glossary
    }

    /// The simplified form of a character.
    pub(super) fn simplified(&self, letter: char) -> char {
        self.simplifications.get(&letter).copied().unwrap_or(letter)
    }

    /// The glosses of a word in simplified spelling; `None` if it is unknown.
    pub(super) fn glosses(&self, word: &str) -> Option<&[Vec<String>]> {
        self.words.get(word).map(Vec::as_slice)
    }
}

fn parse_pair(text: &str) -> Option<(char, char)> {
    let mut characters = text.chars();
    let pair = (characters.next()?, characters.next()?);
    characters.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{is_han, translate},
        *,
    };

    #[test]
    fn every_line_of_the_table_is_valid() {
        for line in CHINESE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(pairs) = line.strip_prefix('~') {
                assert!(
                    pairs.split_whitespace().all(|characters| parse_pair(characters).is_some()),
                    "{line}"
                );
                continue;
            }
            let (words, glosses) = line.split_once('=').unwrap();
            assert!(words.split_whitespace().all(|word| word.chars().all(is_han)), "{line}");
            let is_plain = |letter: char| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || " ;".contains(letter)
            };
            assert!(glosses.chars().all(is_plain), "{line}");
        }
        assert!(Glossary::built_in().words.len() > 1_000);
    }

    #[test]
    fn every_word_is_found_as_a_whole() {
        for (word, glosses) in &Glossary::built_in().words {
            assert!(word.chars().count() <= MAX_WORD_CHARS, "{word}");
            // Two words never cost less than one.
            let found: Vec<_> = translate(word).into_iter().map(|word| (word.range, word.glosses)).collect();
            let expected = (!glosses.is_empty()).then_some((0..word.len(), glosses.as_slice()));
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{word}");
        }
    }

    #[test]
    fn simplification_is_idempotent() {
        let glossary = Glossary::built_in();
        for simplified in glossary.simplifications.values() {
            assert_eq!(glossary.simplified(*simplified), *simplified);
        }
    }
}
