//! Synonyms: maps everyday English words of requests to the words of tool definitions.

use std::{collections::HashMap, sync::LazyLock};

use crate::analysis::stemmer::stem_english;

/// Synonyms of a word or phrase, each a list of terms, the likeliest first.
pub(crate) type Synonyms = Vec<Vec<String>>;

/// Number of words of the longest phrase in the table.
pub(crate) const MAX_PHRASE_WORDS: usize = 3;

static TABLE: LazyLock<HashMap<String, Synonyms>> = LazyLock::new(|| parse(include_str!("synonyms.txt")));

/// Synonyms of a term, or of a phrase of terms separated by spaces.
pub(crate) fn synonyms(terms: &str) -> &'static [Vec<String>] {
    TABLE.get(terms).map(Vec::as_slice).unwrap_or_default()
}

/// Parses lines such as `kid, toddler > child, children`; `#` starts a comment.
fn parse(table: &str) -> HashMap<String, Synonyms> {
    let mut synonyms_by_phrase: HashMap<String, Synonyms> = HashMap::new();
    for line in table.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let Some((phrases, synonyms)) = line.split_once('>') else { continue };
        let synonyms: Synonyms = synonyms.split(',').map(terms).filter(|terms| !terms.is_empty()).collect();
        for phrase in phrases.split(',') {
            let key = terms(phrase).join(" ");
            let known = synonyms_by_phrase.entry(key.clone()).or_default();
            for synonym in &synonyms {
                if !known.contains(synonym) && synonym.join(" ") != key {
                    known.push(synonym.clone());
                }
            }
        }
    }
    synonyms_by_phrase
}

fn terms(phrase: &str) -> Vec<String> {
    phrase
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(stem_english)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_words_have_the_words_of_tools_as_synonyms() {
        assert!(synonyms("kid").contains(&vec!["child".to_owned()]));
        assert!(synonyms("get rid of").contains(&vec![stem_english("delete")]));
        assert!(synonyms("xyzzy").is_empty());
    }

    #[test]
    fn every_line_of_the_table_can_be_read() {
        for line in include_str!("synonyms.txt").lines().filter(|line| !line.trim().is_empty()) {
            let is_valid = line.starts_with('#') || parse(line).values().all(|synonyms| !synonyms.is_empty());
            assert!(is_valid && (line.starts_with('#') || line.matches('>').count() == 1), "{line}");
        }
        let longest = TABLE.keys().map(|key| key.split(' ').count()).max();
        assert!(longest <= Some(MAX_PHRASE_WORDS), "{longest:?}");
    }
}
