//! Capabilities of tools, extracted from their names and descriptions by English and Chinese keywords.

use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::{Deserialize, Serialize};

use crate::text_id::text_id;

text_id! {
    /// What a tool is good for, such as `search` or `calculate`; finds tools when no name is known.
    Capability
}

/// Kinds of tools. The kind decides whether calls are raced or merged, and how much output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// A calculation: one short, exact answer.
    Calculate,
    /// Date and time: one short, exact answer.
    Time,
    /// Search: many partial answers.
    Search,
    /// Extraction from documents: many partial answers.
    Extract,
    /// Earlier messages of a conversation.
    History,
    /// Everything else.
    Other,
}

impl ToolKind {
    /// The kind of the first capability that has one.
    pub fn of<'a>(capabilities: impl IntoIterator<Item = &'a Capability>) -> Self {
        let kind = |capability: &Capability| match capability.as_str() {
            "calculate" => Some(Self::Calculate),
            "time" => Some(Self::Time),
            "search" => Some(Self::Search),
            "extract" => Some(Self::Extract),
            "history" => Some(Self::History),
            _ => None,
        };
        capabilities.into_iter().find_map(kind).unwrap_or(Self::Other)
    }
}

/// One row of the keyword table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRule {
    /// The capabilities that a tool gets.
    pub tags: Vec<Capability>,
    /// Keywords that give a tool these capabilities. A trailing `*` accepts any ending; Chinese words match anywhere.
    pub keywords: Vec<String>,
}

/// The compiled keyword table: finds all keywords in one pass over a text.
#[derive(Debug, Clone)]
pub struct CapabilityTable {
    automaton: Option<AhoCorasick>,
    keywords: Vec<Keyword>,
    /// The rows that the operator added.
    rules: Vec<CapabilityRule>,
}

impl PartialEq for CapabilityTable {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

#[derive(Debug, Clone)]
struct Keyword {
    tags: Arc<[Capability]>,
    ending: Ending,
}

/// What may follow a keyword in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The word ends here.
    Whole,
    /// The word may go on: the keyword is its beginning.
    Stem,
    /// Anything, before and after it: the script has no spaces between words.
    Anywhere,
}

static BUILT_IN: LazyLock<CapabilityTable> = LazyLock::new(|| CapabilityTable::with_rules(&[]));

impl CapabilityTable {
    /// The built-in table.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// The built-in table extended by the operator's rows.
    pub fn with_rules(rules: &[CapabilityRule]) -> Self {
        // A test checks that the built-in table parses.
        let built_in: Vec<CapabilityRule> =
            serde_json::from_str(include_str!("capabilities.json")).unwrap_or_default();
        let mut patterns = Vec::new();
        let mut keywords = Vec::new();
        for rule in built_in.iter().chain(rules) {
            let tags: Arc<[Capability]> = rule.tags.clone().into();
            for keyword in &rule.keywords {
                let stem = keyword.trim().trim_end_matches('*');
                if stem.is_empty() {
                    continue;
                }
                let ending = if !stem.is_ascii() {
                    Ending::Anywhere
                } else if keyword.ends_with('*') {
                    Ending::Stem
                } else {
                    Ending::Whole
                };
                patterns.push(stem.to_owned());
                keywords.push(Keyword { tags: Arc::clone(&tags), ending });
            }
        }
        // The cheapest automaton to build: a short-lived process builds it for a few tools.
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::NoncontiguousNFA))
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(&patterns)
            .ok();
        Self { automaton, keywords, rules: rules.to_vec() }
    }

    /// All capabilities in the table, with repetitions.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        self.keywords.iter().flat_map(|keyword| keyword.tags.iter().map(Capability::as_str))
    }

    /// The capabilities of a text, in the order of their first keyword.
    pub fn capabilities_in(&self, text: &str) -> Vec<Capability> {
        let mut found = Vec::new();
        let Some(automaton) = &self.automaton else {
            return found;
        };
        for hit in automaton.find_overlapping_iter(text) {
            let Some(keyword) = self.keywords.get(hit.pattern().as_usize()) else {
                continue;
            };
            if keyword.ending.matches(text, hit.start(), hit.end()) {
                for tag in keyword.tags.iter() {
                    if !found.contains(tag) {
                        found.push(tag.clone());
                    }
                }
            }
        }
        found
    }

    /// The capabilities of a tool. Those of its name come first, so that the name decides its [`ToolKind`].
    pub fn extract(&self, name: &str, description: &str) -> Vec<Capability> {
        let mut tags = self.capabilities_in(&split_name(name));
        for tag in self.capabilities_in(description) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        tags
    }
}

impl Ending {
    fn matches(self, text: &str, start: usize, end: usize) -> bool {
        let is_word_byte = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = text.as_bytes();
        let starts_word = !is_word_byte(start.checked_sub(1).and_then(|before| bytes.get(before)));
        match self {
            Self::Anywhere => true,
            Self::Stem => starts_word,
            Self::Whole => starts_word && !is_word_byte(bytes.get(end)),
        }
    }
}

/// The capabilities of a tool, by the built-in table.
pub fn extract_capabilities(name: &str, description: &str) -> Vec<Capability> {
    CapabilityTable::built_in().extract(name, description)
}

/// Splits `readDataFromExcel` and `read_data` into words.
fn split_name(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut after_lowercase = false;
    for letter in name.chars() {
        if letter.is_uppercase() && after_lowercase {
            words.push(' ');
        }
        after_lowercase = letter.is_lowercase() || letter.is_ascii_digit();
        words.push(if matches!(letter, '_' | '-' | '.' | '/') { ' ' } else { letter });
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(name: &str, description: &str) -> Vec<String> {
        extract_capabilities(name, description).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_three_examples_of_the_specification_are_tagged() {
        assert_eq!(tags("x", "搜索"), ["search", "web", "research"]);
        assert_eq!(tags("x", "计算"), ["calculate"]);
        assert_eq!(tags("x", "时间"), ["time"]);
    }

    #[test]
    fn the_built_in_table_parses() {
        assert!(CapabilityTable::built_in().keywords.len() > 150);
        assert!(CapabilityTable::built_in().automaton.is_some());
    }

    #[test]
    fn words_are_matched_whole_and_in_any_case() {
        assert_eq!(tags("x", "sometimes a runtime"), Vec::<String>::new());
        assert_eq!(tags("x", "The TIME in Tokyo"), ["time"]);
        assert_eq!(tags("x", "Calculator"), ["calculate"]);
    }

    #[test]
    fn names_are_split_into_words_and_come_first() {
        assert_eq!(
            tags("readDataFromExcel", "search"),
            ["read", "spreadsheet", "table", "search", "web", "research"]
        );
        assert_eq!(ToolKind::of(&extract_capabilities("get_time", "search for the time")), ToolKind::Time);
    }

    #[test]
    fn the_operator_adds_rows() {
        let rule = CapabilityRule {
            tags: vec!["kitchen".into()],
            keywords: vec!["食谱".into(), "recipe*".into()],
        };
        let table = CapabilityTable::with_rules(&[rule]);
        assert_eq!(table.extract("cook", "Find recipes"), ["search".into(), "kitchen".into()]);
        assert_eq!(table.extract("x", "家常食谱"), ["kitchen".into()]);
    }
}
