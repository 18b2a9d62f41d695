//! What tools call the things people ask for: a table of English words, from everyday speech to that of definitions.

use std::{collections::HashMap, sync::LazyLock};

use super::stem::english;

/// Terms that may stand for a word or a phrase: one or two words each, the likeliest first.
pub(crate) type Alternatives = Vec<Vec<String>>;

/// Phrases in the table have at most so many words.
pub(crate) const LONGEST_PHRASE: usize = 3;

static TABLE: LazyLock<HashMap<String, Alternatives>> = LazyLock::new(|| read(include_str!("synonyms.txt")));

/// What tools may call a term, or a phrase as terms with a space between them.
pub(crate) fn synonyms(terms: &str) -> &'static [Vec<String>] {
    TABLE.get(terms).map(Vec::as_slice).unwrap_or_default()
}

/// Lines of `kid, toddler > child, children`; `#` begins a comment.
fn read(table: &str) -> HashMap<String, Alternatives> {
    let mut all: HashMap<String, Alternatives> = HashMap::new();
    for line in table.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let Some((said, meant)) = line.split_once('>') else { continue };
        let meant: Alternatives = meant.split(',').map(terms).filter(|terms| !terms.is_empty()).collect();
        for phrase in said.split(',') {
            let key = terms(phrase).join(" ");
            let known = all.entry(key.clone()).or_default();
            for alternative in &meant {
                if !known.contains(alternative) && alternative.join(" ") != key {
                    known.push(alternative.clone());
                }
            }
        }
    }
    all
}

fn terms(phrase: &str) -> Vec<String> {
    phrase
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(english)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_words_lead_to_those_of_tools() {
        assert!(synonyms("kid").contains(&vec!["child".to_owned()]));
        assert!(synonyms("get rid of").contains(&vec![english("delete")]));
        assert!(synonyms("xyzzy").is_empty());
    }

    #[test]
    fn every_line_of_the_table_can_be_read() {
        for line in include_str!("synonyms.txt").lines().filter(|line| !line.trim().is_empty()) {
            let fine = line.starts_with('#') || read(line).values().all(|meant| !meant.is_empty());
            assert!(fine && (line.starts_with('#') || line.matches('>').count() == 1), "{line}");
        }
        let longest = TABLE.keys().map(|key| key.split(' ').count()).max();
        assert!(longest <= Some(LONGEST_PHRASE), "{longest:?}");
    }
}
