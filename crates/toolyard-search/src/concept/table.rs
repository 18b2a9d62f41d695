//! The tables of concepts, parsed on first use.

use std::{collections::HashMap, sync::LazyLock};

use super::{Concept, ConceptKind};
use crate::analysis::stemmer::stem_english;

/// Longest phrase of the tables, in words.
pub(super) const MAX_PHRASE_WORDS: usize = 4;

/// Strength of a word that is listed as weaker evidence.
const WEAK_EVIDENCE: f32 = 0.4;

pub(super) static TABLE: LazyLock<ConceptTable> = LazyLock::new(|| {
    let mut table = ConceptTable::default();
    table.parse(ConceptKind::Subject, include_str!("subjects.txt"));
    table.parse(ConceptKind::Action, include_str!("actions.txt"));
    table
});

/// Position of a concept in [`ConceptTable::concepts`].
pub(super) type ConceptIndex = usize;

#[derive(Debug, Default)]
pub(super) struct ConceptTable {
    pub(super) concepts: Vec<Concept>,
    /// Concepts by a phrase of stems in the name of a server or tool.
    pub(super) by_tool_phrase: HashMap<String, Vec<ConceptIndex>>,
    /// Concepts, with the strength of the evidence, by a phrase of stems in an English request.
    pub(super) by_request_phrase: HashMap<String, Vec<(ConceptIndex, f32)>>,
    /// The same by a phrase in a Chinese request.
    pub(super) by_chinese_phrase: HashMap<&'static str, Vec<(ConceptIndex, f32)>>,
    /// Longest Chinese phrase, in characters.
    pub(super) max_chinese_chars: usize,
}

impl ConceptTable {
    fn parse(&mut self, kind: ConceptKind, text: &'static str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let prefix = if kind == ConceptKind::Subject { "subject" } else { "action" };
                self.concepts.push(Concept { kind, term: format!("{prefix}:{name}") });
                continue;
            }
            let (Some(concept), Some((key, phrases))) =
                (self.concepts.len().checked_sub(1), line.split_once('='))
            else {
                continue;
            };
            let key = key.trim();
            let strength = if key.ends_with('~') { WEAK_EVIDENCE } else { 1.0 };
            for phrase in phrases.split(',').map(str::trim).filter(|phrase| !phrase.is_empty()) {
                self.add(concept, key.trim_end_matches('~'), phrase, strength);
            }
        }
    }

    fn add(&mut self, concept: ConceptIndex, key: &str, phrase: &'static str, strength: f32) {
        match key {
            "tools" => self.by_tool_phrase.entry(stems(phrase)).or_default().push(concept),
            "en" => self.by_request_phrase.entry(stems(phrase)).or_default().push((concept, strength)),
            "zh" => {
                self.max_chinese_chars = self.max_chinese_chars.max(phrase.chars().count());
                self.by_chinese_phrase.entry(phrase).or_default().push((concept, strength));
            }
            _ => {}
        }
    }

    /// Index of a concept by its term.
    pub(super) fn position(&self, term: &str) -> Option<ConceptIndex> {
        self.concepts.iter().position(|concept| concept.term == term)
    }
}

/// The stems of a phrase, separated by spaces.
pub(super) fn stems(phrase: &str) -> String {
    let words = phrase.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| stem_english(&word.to_lowercase())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_can_be_read() {
        for text in [include_str!("subjects.txt"), include_str!("actions.txt")] {
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                let is_name = line.starts_with('[') && line.ends_with(']');
                let key = line.split_once('=').map(|(key, _)| key.trim());
                assert!(is_name || matches!(key, Some("tools" | "en" | "en~" | "zh" | "zh~")), "{line}");
            }
        }
        let longest = TABLE.by_request_phrase.keys().map(|key| key.split(' ').count()).max();
        assert!(longest <= Some(MAX_PHRASE_WORDS), "{longest:?}");
        let is_single = |phrase: &&&str| phrase.chars().count() < 2;
        assert_eq!(TABLE.by_chinese_phrase.keys().find(is_single), None, "one character says too little");
    }

    #[test]
    fn every_concept_has_tools_and_requests_and_a_unique_name() {
        for (position, concept) in TABLE.concepts.iter().enumerate() {
            assert_eq!(TABLE.position(&concept.term), Some(position), "{}", concept.term);
            let has = |found: bool, what| assert!(found, "{} has no {what}", concept.term);
            has(TABLE.by_tool_phrase.values().any(|all| all.contains(&position)), "tools");
            has(TABLE.by_request_phrase.values().flatten().any(|(one, _)| *one == position), "requests");
        }
    }
}
