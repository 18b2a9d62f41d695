//! The concepts that a request mentions.

use super::{
    Concept, ConceptKind,
    table::{ConceptIndex, MAX_PHRASE_WORDS, TABLE},
    value::value_concepts,
};
use crate::analysis::{stemmer::stem_english, tokenizer::is_cjk};

/// Words of a request that are examined.
const MAX_WORDS: usize = 200;

/// A word or phrase of a request and the concepts that it may mean.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConceptMention {
    /// As written, or in stems.
    pub(crate) word: String,
    pub(crate) kind: ConceptKind,
    /// The concepts, with the strength of the evidence (0 to 1); one of them is meant.
    pub(crate) concepts: Vec<(&'static Concept, f32)>,
}

/// The mentions of concepts in a request, in order. A longer phrase replaces the words inside it.
pub(crate) fn concept_mentions(text: &str) -> Vec<ConceptMention> {
    let mut mentions = Vec::new();
    for word in text.split_whitespace() {
        for (kind_of_value, names) in value_concepts(word) {
            let known = names.iter().filter_map(|name| TABLE.position(name));
            add_mention(&mut mentions, kind_of_value, &known.map(|one| (one, 1.0)).collect::<Vec<_>>());
        }
    }
    english_mentions(text, &mut mentions);
    chinese_mentions(text, &mut mentions);
    mentions
}

fn english_mentions(text: &str, mentions: &mut Vec<ConceptMention>) {
    for run in text.split(|letter: char| {
        matches!(letter, '.' | ',' | ';' | '?' | '!' | ':' | '(' | ')' | '"') || is_cjk(letter)
    }) {
        let words: Vec<String> = run
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(MAX_WORDS)
            .map(|word| stem_english(&word.to_lowercase()))
            .collect();
        let mut at = 0;
        while at < words.len() {
            let mut length = 1;
            for candidate in (1..=MAX_PHRASE_WORDS).rev() {
                let Some(phrase) = words.get(at..at + candidate).map(|words| words.join(" ")) else {
                    continue;
                };
                if let Some(concepts) = TABLE.by_request_phrase.get(&phrase) {
                    add_mention(mentions, &phrase, concepts);
                    length = candidate;
                    break;
                }
            }
            at += length;
        }
    }
}

fn chinese_mentions(text: &str, mentions: &mut Vec<ConceptMention>) {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut at = 0;
    while at + 1 < starts.len() {
        let longest = (2..=TABLE.max_chinese_chars).rev().find_map(|chars| {
            let phrase = text.get(*starts.get(at)?..*starts.get(at + chars)?)?;
            TABLE.by_chinese_phrase.get(phrase).map(|concepts| (chars, phrase, concepts))
        });
        if let Some((chars, phrase, concepts)) = longest {
            add_mention(mentions, phrase, concepts);
            at += chars;
        } else {
            at += 1;
        }
    }
}

/// Adds one mention per kind of concept: a word may say both what is to be done and to what.
fn add_mention(mentions: &mut Vec<ConceptMention>, word: &str, concepts: &[(ConceptIndex, f32)]) {
    for kind in [ConceptKind::Subject, ConceptKind::Action] {
        let of_kind: Vec<(&'static Concept, f32)> = concepts
            .iter()
            .filter_map(|(index, strength)| Some((TABLE.concepts.get(*index)?, *strength)))
            .filter(|(concept, _)| concept.kind == kind)
            .collect();
        let is_new = mentions.iter().all(|known| known.word != word || known.kind != kind);
        if !of_kind.is_empty() && is_new {
            mentions.push(ConceptMention { word: word.to_owned(), kind, concepts: of_kind });
        }
    }
}
