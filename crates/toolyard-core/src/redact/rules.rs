//! The formats of `rules.json`: found by a literal, held against a pattern that runs from there.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::Regex;
use serde::Deserialize;

use super::{
    Span, is_in_marker,
    telling::{Words, is_ordinary},
};

/// The built-in rules. A test holds that they can be read and that every pattern compiles.
pub(super) static RULE_BOOK: LazyLock<RuleBook> =
    LazyLock::new(|| RuleBook::new(serde_json::from_str(include_str!("rules.json")).unwrap_or_default()));

/// `rules.json` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    formats: Vec<Format>,
    words: Words,
}

/// One format of secrets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Format {
    /// What the replacement says.
    pub(super) kind: String,
    /// Literals of which one stands in every secret of this format.
    find: Vec<String>,
    /// How many bytes before the literal the secret begins.
    #[serde(default)]
    back: usize,
    /// Whether literals and pattern match in any case.
    #[serde(default)]
    any_case: bool,
    /// What must stand before the pattern.
    #[serde(default)]
    before: Before,
    /// Whether a value that is an ordinary word or a placeholder is let be.
    #[serde(default)]
    unless_ordinary: bool,
    /// What the text must look like from there. The group `secret` is replaced, or else the whole.
    pattern: String,
    /// A made-up secret, for the tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for readers and tests"))]
    pub(super) example: Example,
    #[serde(skip)]
    regex: OnceLock<Option<Regex>>,
}

/// A secret in its surroundings, in parts, so that no scanner takes this repository for a leak.
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

/// What must stand before a pattern.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Before {
    /// The format cannot be mistaken, even inside a word.
    #[default]
    Anything,
    /// No letter or digit, unless it ends an escape such as `\n` or `%3D`.
    Edge,
    /// A digit.
    Digit,
    /// As `Anything`, and where it does not match, it matches nowhere in the same run of letters and digits.
    Run,
}

/// All rules, ready to use.
#[derive(Debug)]
pub(super) struct RuleBook {
    pub(super) formats: Vec<Format>,
    pub(super) words: Words,
    exact: Index,
    any_case: Index,
}

/// The literals of the formats in one automaton.
#[derive(Debug)]
struct Index {
    automaton: Option<AhoCorasick>,
    /// The format of each literal.
    formats: Vec<usize>,
}

impl RuleBook {
    fn new(data: Data) -> Self {
        let exact = Index::new(&data.formats, false);
        let any_case = Index::new(&data.formats, true);
        Self { formats: data.formats, words: data.words, exact, any_case }
    }

    pub(super) fn has_kind(&self, kind: &str) -> bool {
        self.formats.iter().any(|format| format.kind == kind)
    }

    /// Everything in the text that has a known format.
    pub(super) fn find(&'static self, text: &str, spans: &mut Vec<Span>) {
        for index in [&self.exact, &self.any_case] {
            let Some(automaton) = &index.automaton else {
                continue;
            };
            // Up to where each format has been tried: no format reads a stretch of text twice.
            let mut tried = Vec::new();
            for hit in automaton.find_overlapping_iter(text) {
                let Some((&number, format)) = index
                    .formats
                    .get(hit.pattern().as_usize())
                    .and_then(|number| Some((number, self.formats.get(*number)?)))
                else {
                    continue;
                };
                tried.resize(self.formats.len(), 0);
                let Some(tried) = tried.get_mut(number) else {
                    continue;
                };
                if let Some(start) = hit.start().checked_sub(format.back).filter(|start| start >= tried) {
                    *tried = format.try_at(text, start, spans).unwrap_or(*tried);
                }
            }
        }
    }
}

impl Index {
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
    /// Compiled when its literal is met for the first time: most formats never are.
    pub(super) fn regex(&self) -> Option<&Regex> {
        let flags = if self.any_case { "(?i)" } else { "" };
        self.regex.get_or_init(|| Regex::new(&format!("{flags}\\A(?:{})", self.pattern)).ok()).as_ref()
    }

    /// Holds the text from `start` against the pattern. Says up to where this format has now seen the text.
    fn try_at(&'static self, text: &str, start: usize, spans: &mut Vec<Span>) -> Option<usize> {
        let rest = text.get(start..)?;
        if !self.before.fits(text.as_bytes(), start) {
            return None;
        }
        let Some(found) = self.regex()?.captures(rest) else {
            return (self.before == Before::Run).then(|| start + run_length(rest));
        };
        let whole = found.get(0)?;
        let secret = found.name("secret").unwrap_or(whole);
        let ordinary = self.unless_ordinary && is_ordinary(secret.as_str());
        if !ordinary && !secret.is_empty() && !is_in_marker(text, start) {
            spans.push(Span { start: start + secret.start(), end: start + secret.end(), kind: &self.kind });
        }
        // What follows the secret may be the beginning of the next.
        Some(start + secret.end())
    }
}

impl Before {
    fn fits(self, text: &[u8], position: usize) -> bool {
        let before = text.get(..position).unwrap_or_default();
        match self {
            Self::Anything | Self::Run => true,
            Self::Digit => before.last().is_some_and(u8::is_ascii_digit),
            Self::Edge => !before.last().is_some_and(u8::is_ascii_alphanumeric) || ends_escape(before),
        }
    }
}

/// Whether a text ends with `\n`, `%3D`, `\u003d` or a colour code, which are no part of the word after them.
fn ends_escape(text: &[u8]) -> bool {
    match text {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f' | b'v' | b'0'] => true,
        [.., b'%', high, low] | [.., b'\\', b'x', high, low] | [.., b'\\', b'u', _, _, high, low] => {
            high.is_ascii_hexdigit() && low.is_ascii_hexdigit()
        }
        [.., b'0'..=b'9' | b'[', b'm'] => text.iter().rev().take(12).any(|byte| *byte == 0x1b),
        _ => false,
    }
}

fn run_length(text: &str) -> usize {
    let is_run = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    text.bytes().position(|byte| !is_run(byte)).unwrap_or(text.len())
}
