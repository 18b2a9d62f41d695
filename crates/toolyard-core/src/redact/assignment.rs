//! Finds values assigned to a secret key in text: `password=…`, `"token": "…"`, `--api-key …`, `<secret>…`.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::{Captures, Match, Regex};

use super::{
    marker::{ASSIGNMENT, Span, is_in_marker},
    rules::RULES,
    sensitivity::{Sensitivity, is_harmless_key, is_ordinary_value, key_sensitivity, looks_secret},
};

/// How far a key is read to either side of a secret word.
const MAX_KEY_REACH_BYTES: usize = 64;

/// How a value is written. Decides how much it must look like a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// In quotes or between tags.
    Quoted,
    /// Right after the sign: `token=…`.
    Tight,
    /// After a sign and a space, as in configuration but also in prose: `token: …`.
    Loose,
    /// After an option: `--token …`.
    Option,
}

/// The ways in which a value can be written. A test checks that they compile.
struct Patterns {
    /// The last words of all secret phrases.
    last_words: Option<AhoCorasick>,
    assigned: Option<Regex>,
    environment: Option<Regex>,
    option: Option<Regex>,
    tag: Option<Regex>,
}

/// A value in quotes, whose inner quotes may be escaped, in a text that may itself be escaped once or more.
const QUOTED: &str = r#""(?P<double>(?:[^"\\\r\n]|\\[^\r\n])*)|'(?P<single>(?:[^'\\\r\n]|\\[^\r\n])*)|`(?P<back>[^`\r\n]*)|\\"(?P<escaped>(?:[^"\\\r\n]|\\{3}"|\\{2}|\\[^"\\\r\n])*)|\\{2,}"(?P<deep>(?:[^"\\\r\n]|\\+[^"\\\r\n])*)|\\+'(?P<quote>[^'\\\r\n]*)"#;

/// A value without quotes, which begins in ASCII. A backslash belongs to it unless it begins an escape.
const BARE: &str = r#"(?:(?i:bearer|basic|token|bot|apikey)[ \t]+)?(?P<bare>(?:\\[^nrtbfu"'\\/\s]|[!-~--"'`,;&<>(){}|\\:=])(?:\\[^nrtbfu"'\\/\s]|[^\s"'`,;&<>\\])*)"#;

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let sign = r"[ \t]{0,8}(?:=>|->|:=|={1,3}|:|：|%3[dD]|\\u003[dD])";
    let key_end = r#"(?:\\{0,7}["'`])?\]?\*{0,2}"#;
    let annotation = r"[ \t]?:[ \t]?(?:&(?:'static )?str|[Ss]tr(?:ing)?|Optional\[str\]|SecretStr|bytes|[Aa]ny)[ \t]?=[ \t]?";
    let compile = |pattern: String| Regex::new(&pattern).ok();
    Patterns {
        last_words: AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .ascii_case_insensitive(true)
            .build(last_words())
            .ok(),
        assigned: compile(format!(
            r#"\A{key_end}(?:{annotation}["'](?P<typed>(?:[^"'\\\r\n]|\\[^\r\n])+)|(?P<sign>{sign}\*{{0,2}}[ \t]{{0,8}})(?:{QUOTED}|{BARE}))"#
        )),
        environment: compile(r#"\A=(?P<bare>[!-~--"'`\\;<>(){}|$%][^\s"'`\\;|]*)"#.to_owned()),
        option: compile(format!(
            r#"\A(?:\\*["'][ \t]*,[ \t]*|[ \t]+)(?:{QUOTED}|(?P<bare>[!-~--"'`\\\-=:;|&<>,(){{}}\[\]][^\s"'`\\;|&<>]*))"#
        )),
        tag: compile(r"\A(?: [^<>\r\n]{0,64})?>(?P<tag>[^<>\r\n]+)</".to_owned()),
    }
});

/// The last words of all secret phrases: every secret key ends with one.
fn last_words() -> Vec<&'static str> {
    let words = &RULES.words;
    let mut last: Vec<&str> = words
        .secret
        .iter()
        .chain(&words.ambiguous)
        .map(|phrase| phrase.rsplit(' ').next().unwrap_or(phrase.as_str()))
        .collect();
    last.sort_unstable();
    last.dedup();
    last
}

/// Appends every value in the text that is assigned to a secret key.
pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let Some(words) = &PATTERNS.last_words else {
        return;
    };
    let mut scanned_to = 0;
    for hit in words.find_iter(text) {
        if hit.start() < scanned_to {
            continue;
        }
        let name = key_around(text, hit.start(), hit.end());
        scanned_to = name.end;
        if let Some(span) = value_after(text, name) {
            scanned_to = span.end;
            spans.push(span);
        }
    }
}

/// The range of a key in the text.
#[derive(Debug, Clone, Copy)]
struct KeyRange {
    start: usize,
    end: usize,
}

/// The whole key that a secret word is part of. In scripts without spaces, the word is the key.
fn key_around(text: &str, start: usize, end: usize) -> KeyRange {
    if !text.get(start..end).is_some_and(str::is_ascii) {
        return KeyRange { start, end };
    }
    let is_key_byte = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let before = text.as_bytes().get(..start).unwrap_or_default();
    let after = text.as_bytes().get(end..).unwrap_or_default();
    let left = before.iter().rev().take(MAX_KEY_REACH_BYTES).take_while(is_key_byte).count();
    let right = after.iter().take(MAX_KEY_REACH_BYTES).take_while(is_key_byte).count();
    let escape =
        before.get(..start - left).and_then(|outside| escape_length(outside, before.get(start - left..)?));
    KeyRange { start: start - left + escape.unwrap_or(0).min(left), end: end + right }
}

/// How many bytes of a key belong to an escape that starts before it: `\n`, `%3F`, `\u003f`.
fn escape_length(before: &[u8], name: &[u8]) -> Option<usize> {
    let is_hexadecimal =
        |digits: Option<&[u8]>| digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    match (before.last()?, name.first()?) {
        (b'%', _) if is_hexadecimal(name.get(..2)) => Some(2),
        (b'\\', b'u') if is_hexadecimal(name.get(1..5)) => Some(5),
        (b'\\', _) => Some(1),
        _ => None,
    }
}

/// The key with the word before it: `API key` is one key.
fn with_word_before(text: &str, name: KeyRange) -> KeyRange {
    let before = text.get(..name.start).unwrap_or_default();
    let Some(rest) = before.strip_suffix(' ') else {
        return name;
    };
    let letters = rest.bytes().rev().take(MAX_KEY_REACH_BYTES).take_while(u8::is_ascii_alphabetic).count();
    KeyRange { start: rest.len() - letters, ..name }
}

fn value_after(text: &str, name: KeyRange) -> Option<Span> {
    let rest = text.get(name.end..)?;
    let next = *rest.as_bytes().first()?;
    let is_option = text.get(name.start..name.end)?.starts_with('-');
    let sign = *rest.trim_start_matches([' ', '\t']).as_bytes().first()?;
    let may_follow = if sign == next { &b"=:\"'`\\]*>%"[..] } else { &b"=:-\\"[..] };
    if !(may_follow.contains(&sign) || sign >= 0x80 || is_option || opens_tag(text, name)) {
        return None;
    }
    let mut name = name;
    let mut sensitivity = key_sensitivity(text.get(name.start..name.end)?);
    let longer = with_word_before(text, name);
    if sensitivity == Sensitivity::None {
        name = longer;
        sensitivity = key_sensitivity(text.get(name.start..name.end)?);
    } else if is_harmless_key(text.get(longer.start..longer.end)?) {
        return None;
    }
    if sensitivity == Sensitivity::None || is_in_marker(text, name.start) {
        return None;
    }
    let (value, style) = match tag_value(text, name, rest) {
        Some(value) => (value, Style::Quoted),
        None => assigned_value(text, name, rest, is_option)?,
    };
    let value_text = if style == Style::Quoted { value.as_str() } else { trim_bare(value.as_str()) };
    let secret = without_scheme(value_text);
    let start = name.end + value.start() + (value_text.len() - secret.len());
    let end = name.end + value.start() + value_text.len();
    is_secret(sensitivity, style, secret, text.get(end..)?).then_some(Span { start, end, kind: ASSIGNMENT })
}

/// Whether a key follows `<` or the prefix of a tag.
fn opens_tag(text: &str, name: KeyRange) -> bool {
    text.get(..name.start).is_some_and(|before| before.ends_with(['<', ':']))
}

/// The text between `<password>` and `</`.
fn tag_value<'t>(text: &str, name: KeyRange, rest: &'t str) -> Option<Match<'t>> {
    if !opens_tag(text, name) || !rest.starts_with(['>', ' ']) {
        return None;
    }
    PATTERNS.tag.as_ref()?.captures(rest)?.name("tag")
}

fn assigned_value<'t>(
    text: &str,
    name: KeyRange,
    rest: &'t str,
    is_option: bool,
) -> Option<(Match<'t>, Style)> {
    let is_uppercase = !text.get(name.start..name.end)?.bytes().any(|byte| byte.is_ascii_lowercase());
    if is_uppercase && let Some(found) = PATTERNS.environment.as_ref()?.captures(rest) {
        return Some((found.name("bare")?, Style::Tight));
    }
    if let Some(found) = PATTERNS.assigned.as_ref()?.captures(rest) {
        if let Some(value) = quoted(&found) {
            return Some((value, Style::Quoted));
        }
        let (sign, bare) = (found.name("sign")?, found.name("bare")?);
        let has_scheme = sign.end() < bare.start() && ends_with_word(text.get(..name.end)?, "authorization");
        let is_loose = sign.as_str().ends_with([' ', '\t', '*']) && !has_scheme;
        return Some((bare, if is_loose { Style::Loose } else { Style::Tight }));
    }
    if !is_option {
        return None;
    }
    let found = PATTERNS.option.as_ref()?.captures(rest)?;
    match quoted(&found) {
        Some(value) => Some((value, Style::Quoted)),
        None => Some((found.name("bare")?, Style::Option)),
    }
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let end = text.len().checked_sub(word.len()).and_then(|start| text.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(word))
}

fn quoted<'t>(found: &Captures<'t>) -> Option<Match<'t>> {
    ["double", "single", "back", "escaped", "deep", "quote", "typed"]
        .iter()
        .find_map(|group| found.name(group))
}

/// Whether a value is a secret, given how it is written and what follows it.
fn is_secret(sensitivity: Sensitivity, style: Style, value: &str, after: &str) -> bool {
    if is_ordinary_value(value) {
        return false;
    }
    if sensitivity == Sensitivity::Ambiguous {
        return looks_secret(value);
    }
    let is_plain =
        value.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '_' | '-' | '/' | '\''));
    match style {
        Style::Quoted | Style::Option => true,
        // A word before a bracket is a type or a function.
        Style::Tight => !(is_plain && after.starts_with(['(', '<'])),
        Style::Loose if is_plain => ends_line(after) && !after.starts_with(['(', '<', ',', ';']),
        Style::Loose => ends_line(after) || looks_secret(value) && !is_measure(value),
    }
}

/// Whether the line ends here, apart from closing characters.
fn ends_line(after: &str) -> bool {
    let rest = after.trim_start_matches([' ', '\t', ',', ';', '}', ')', ']', '"', '\'', '.']);
    rest.is_empty() || rest.starts_with(['\n', '\r', '#', '\\'])
}

/// Whether a value is a measure of prose: `32-character`, `2nd`.
fn is_measure(value: &str) -> bool {
    let rest = value.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.len() < value.len() && rest.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
}

/// `Bearer abc` without its first word.
fn without_scheme(value: &str) -> &str {
    let Some((scheme, secret)) = value.split_once([' ', '\t']) else {
        return value;
    };
    let is_scheme =
        ["bearer", "basic", "token", "bot", "apikey"].iter().any(|name| name.eq_ignore_ascii_case(scheme));
    if is_scheme { secret.trim_start() } else { value }
}

/// A value without the closing brackets and full stops around it.
fn trim_bare(value: &str) -> &str {
    let surplus =
        |open: char, close: char| value.matches(close).count().saturating_sub(value.matches(open).count());
    let (mut round, mut square, mut curly) = (surplus('(', ')'), surplus('[', ']'), surplus('{', '}'));
    let is_closing = |letter: char| {
        let left = match letter {
            ')' => &mut round,
            ']' => &mut square,
            '}' => &mut curly,
            _ => return letter == '.' || letter == ':',
        };
        let closes = *left > 0;
        *left = left.saturating_sub(1);
        closes
    };
    value.trim_end_matches(is_closing)
}

/// Whether an array element is an option such as `--password`, whose value is the next element.
pub(super) fn is_secret_option(element: &str) -> bool {
    let name = element.trim_start_matches('-');
    name.len() < element.len()
        && !name.contains(['=', ' ', ':'])
        && key_sensitivity(name) == Sensitivity::Secret
}

#[cfg(test)]
pub(super) fn patterns_compile() -> bool {
    PATTERNS.last_words.is_some()
        && [&PATTERNS.assigned, &PATTERNS.environment, &PATTERNS.option, &PATTERNS.tag]
            .iter()
            .all(|pattern| pattern.is_some())
}
