//! The built-in lexicon: frequent Chinese words of requests, compiled into the program.

use std::{collections::BTreeMap, sync::LazyLock};

use super::{
    origin::Origin,
    stored_lexicon::StoredLexicon,
    writer::{LexiconContent, serialize},
};

/// The lexicon that is compiled into the program.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltInLexicon;

const CHINESE: &str = include_str!("zh.txt");

static ORIGIN: LazyLock<Origin> = LazyLock::new(|| Origin {
    language: "zh".to_owned(),
    name: "Toolyard".to_owned(),
    source: "built in".to_owned(),
    licence: "MIT OR Apache-2.0".to_owned(),
    attribution: "Toolyard".to_owned(),
});

/// The built-in table, parsed on first use.
pub(super) fn table() -> Option<&'static StoredLexicon> {
    static TABLE: LazyLock<Option<StoredLexicon>> =
        LazyLock::new(|| StoredLexicon::from_bytes(serialize(&parse_table(CHINESE), &ORIGIN).ok()?).ok());
    TABLE.as_ref()
}

impl BuiltInLexicon {
    /// Origin and licence.
    pub fn origin(&self) -> &'static Origin {
        &ORIGIN
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        table().map_or(0, StoredLexicon::len)
    }

    /// Whether the lexicon has no words.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Parses the table. A line is `word word = gloss; gloss`; words without glosses are stop words. A line that starts with
/// `~` has pairs of a traditional character and its simplified form.
fn parse_table(text: &str) -> LexiconContent {
    let mut content = LexiconContent::default();
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    for pairs in lines().filter_map(|line| line.strip_prefix('~')) {
        content.simplifications.extend(pairs.split_whitespace().filter_map(parse_pair));
    }
    let mut words: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for (spellings, translations) in lines().filter_map(|line| line.split_once('=')) {
        for word in spellings.split_whitespace() {
            let glosses = words.entry(content.simplified(word)).or_default();
            for gloss in translations.split(';') {
                let gloss: Vec<String> = gloss.split_whitespace().map(str::to_owned).collect();
                if !gloss.is_empty() && !glosses.contains(&gloss) {
                    glosses.push(gloss);
                }
            }
        }
    }
    content.words = words;
    content
}

fn parse_pair(text: &str) -> Option<(char, char)> {
    let mut characters = text.chars();
    let pair = (characters.next()?, characters.next()?);
    characters.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::{super::script::is_han, *};

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
        assert!(BuiltInLexicon.len() > 1_000);
    }

    #[test]
    fn traditional_characters_are_simplified() {
        let table = table().unwrap();
        for (traditional, simplified) in parse_table(CHINESE).simplifications {
            assert_eq!(table.simplified(traditional), simplified);
            assert_eq!(table.simplified(simplified), simplified, "simplification is idempotent");
        }
    }
}
