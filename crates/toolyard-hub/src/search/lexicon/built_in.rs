//! Our own table of words that requests to tools are made of; it is inside the program and needs no file.

use std::{collections::BTreeMap, sync::LazyLock};

use super::{
    StoredLexicon,
    build::Origin,
    write::{Content, write},
};

/// The table inside the program.
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

/// The table, ready to be searched.
pub(super) fn table() -> Option<&'static StoredLexicon> {
    static TABLE: LazyLock<Option<StoredLexicon>> =
        LazyLock::new(|| StoredLexicon::from_bytes(write(&content(CHINESE), &ORIGIN).ok()?).ok());
    TABLE.as_ref()
}

impl BuiltInLexicon {
    /// Where it comes from.
    pub fn origin(&self) -> &'static Origin {
        &ORIGIN
    }

    /// How many words it has.
    pub fn len(&self) -> usize {
        table().map_or(0, StoredLexicon::len)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reads the table. A line is `word word = gloss; gloss`; without glosses the words mean nothing to a search; a line that
/// begins with `~` has pairs of a traditional letter and its simplified one.
fn content(text: &str) -> Content {
    let mut content = Content::default();
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    for pairs in lines().filter_map(|line| line.strip_prefix('~')) {
        content.letters.extend(pairs.split_whitespace().filter_map(pair));
    }
    let mut words: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for (names, meanings) in lines().filter_map(|line| line.split_once('=')) {
        for word in names.split_whitespace() {
            let glosses = words.entry(content.simplified(word)).or_default();
            for gloss in meanings.split(';') {
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

fn pair(text: &str) -> Option<(char, char)> {
    let mut letters = text.chars();
    let pair = (letters.next()?, letters.next()?);
    letters.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::{super::form::is_han, *};

    #[test]
    fn every_line_of_the_table_can_be_read() {
        for line in CHINESE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(pairs) = line.strip_prefix('~') {
                assert!(pairs.split_whitespace().all(|letters| pair(letters).is_some()), "{line}");
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
    fn traditional_letters_lead_to_simplified_words() {
        let table = table().unwrap();
        for (traditional, simplified) in content(CHINESE).letters {
            assert_eq!(table.simplified(traditional), simplified);
            assert_eq!(table.simplified(simplified), simplified, "simplified once is simplified");
        }
    }
}
