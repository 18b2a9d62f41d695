//! The redaction rules of `rules.json`: formats of secrets, and words of keys and values.

use std::{
    collections::HashSet,
    sync::{LazyLock, OnceLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::Regex;
use serde::Deserialize;

/// The built-in rules. A test checks that they parse and that every pattern compiles.
pub(super) static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::new(serde_json::from_str(include_str!("rules.json")).unwrap_or_default()));

/// The content of `rules.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    formats: Vec<Format>,
    words: WordLists,
}

/// One format of secrets: a literal that every secret of the format contains, and a pattern.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Format {
    /// The kind that the marker names.
    pub(super) kind: String,
    /// Literals; every secret of this format contains one of them.
    pub(super) find: Vec<String>,
    /// How many bytes before the literal the secret starts.
    #[serde(default)]
    pub(super) back: usize,
    /// Whether literals and pattern ignore case.
    #[serde(default)]
    pub(super) any_case: bool,
    /// What must precede the pattern.
    #[serde(default)]
    pub(super) before: Before,
    /// Whether ordinary words and placeholders are left alone.
    #[serde(default)]
    pub(super) unless_ordinary: bool,
    /// The pattern from the start of the secret. The group `secret` is replaced, or the whole match if there is no such group.
    pattern: String,
    /// A made-up secret, for the tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for readers and tests"))]
    pub(super) example: Example,
    #[serde(skip)]
    regex: OnceLock<Option<Regex>>,
}

/// A made-up secret in context, in parts, so that secret scanners do not report this repository.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "examples are for readers and tests"))]
pub(super) struct Example {
    #[serde(default)]
    pub(super) left: String,
    pub(super) secret: Vec<String>,
    #[serde(default)]
    pub(super) right: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Before {
    /// Anything: the format is unmistakable even inside a word.
    #[default]
    Anything,
    /// No letter or digit, except the end of an escape such as `\n` or `%3D`.
    Edge,
    /// A digit.
    Digit,
    /// Anything; a pattern that does not match here does not match later in the same run of letters, digits, `_` and `-`.
    Run,
}

/// All rules, with the literals of their formats compiled.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) formats: Vec<Format>,
    pub(super) words: WordLists,
    pub(super) exact: LiteralIndex,
    pub(super) any_case: LiteralIndex,
}

/// The literals of the formats in one automaton.
#[derive(Debug)]
pub(super) struct LiteralIndex {
    pub(super) automaton: Option<AhoCorasick>,
    /// The format of each literal, as an index of [`Rules::formats`].
    pub(super) formats: Vec<usize>,
}

impl Rules {
    fn new(file: RulesFile) -> Self {
        let exact = LiteralIndex::new(&file.formats, false);
        let any_case = LiteralIndex::new(&file.formats, true);
        Self { formats: file.formats, words: file.words, exact, any_case }
    }

    pub(super) fn has_kind(&self, kind: &str) -> bool {
        self.formats.iter().any(|format| format.kind == kind)
    }
}

/// Words that tell secrets from other values: lowercase, at most three to a phrase.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WordLists {
    /// Phrases in keys whose values are secret.
    pub(super) secret: HashSet<String>,
    /// Endings of words that mean the same: `pgpassword`.
    pub(super) secret_endings: Vec<String>,
    /// Phrases in keys whose values are secret if they look like one.
    pub(super) ambiguous: HashSet<String>,
    /// Phrases that make a key harmless although it contains a secret word.
    pub(super) harmless: HashSet<String>,
    /// Last words of keys that describe a secret instead of holding it.
    pub(super) metadata_endings: HashSet<String>,
    /// First words of keys whose values are numbers or switches.
    pub(super) flag_prefixes: HashSet<String>,
    /// Values that are no secret: types, placeholders, words of prose.
    pub(super) ordinary_values: HashSet<String>,
    /// Beginnings of placeholders.
    pub(super) placeholder_prefixes: Vec<String>,
    /// Names of objects that code reads secrets from.
    pub(super) secret_owners: HashSet<String>,
    /// Keys of a JSON Schema that describe a secret, not its value.
    pub(super) schema_keywords: HashSet<String>,
}

impl LiteralIndex {
    fn new(all: &[Format], any_case: bool) -> Self {
        let mut literals = Vec::new();
        let mut formats = Vec::new();
        for (number, format) in all.iter().enumerate().filter(|(_, format)| format.any_case == any_case) {
            for literal in format.find.iter().filter(|literal| !literal.is_empty()) {
                literals.push(literal.as_str());
                formats.push(number);
            }
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .ascii_case_insensitive(any_case)
            .build(literals)
            .ok();
        Self { automaton, formats }
    }
}

impl Format {
    /// The compiled pattern. Compiled on first use: most formats never occur.
    pub(super) fn regex(&self) -> Option<&Regex> {
        let flags = if self.any_case { "(?i)" } else { "" };
        self.regex.get_or_init(|| Regex::new(&format!("{flags}\\A(?:{})", self.pattern)).ok()).as_ref()
    }
}
