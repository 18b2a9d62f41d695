//! Finds secrets of known formats: a scan for the literals of all formats, and a pattern where a literal was found.

use super::{
    marker::{Span, is_in_marker},
    rules::{Before, Format, RULES, Rules},
    sensitivity::is_ordinary_value,
};

/// Appends everything in the text that has a known format.
pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let rules: &'static Rules = &RULES;
    for index in [&rules.exact, &rules.any_case] {
        let Some(automaton) = &index.automaton else {
            continue;
        };
        // The position up to which each format was tried, so that no format reads a part of the text twice.
        let mut tried = Vec::new();
        for hit in automaton.find_overlapping_iter(text) {
            let Some((&format_index, format)) = index
                .formats
                .get(hit.pattern().as_usize())
                .and_then(|format| Some((format, rules.formats.get(*format)?)))
            else {
                continue;
            };
            tried.resize(rules.formats.len(), 0);
            let Some(tried) = tried.get_mut(format_index) else {
                continue;
            };
            if let Some(start) = hit.start().checked_sub(format.back).filter(|start| start >= tried) {
                *tried = try_at(format, text, start, spans).unwrap_or(*tried);
            }
        }
    }
}

/// Matches the text from `start` against the pattern. Returns the position up to which the format was tried.
fn try_at(format: &'static Format, text: &str, start: usize, spans: &mut Vec<Span>) -> Option<usize> {
    let rest = text.get(start..)?;
    if !format.before.fits(text.as_bytes(), start) {
        return None;
    }
    let Some(found) = format.regex()?.captures(rest) else {
        return (format.before == Before::Run).then(|| start + run_length(rest));
    };
    let whole = found.get(0)?;
    let secret = found.name("secret").unwrap_or(whole);
    let is_ordinary = format.unless_ordinary && is_ordinary_value(secret.as_str());
    if !is_ordinary && !secret.is_empty() && !is_in_marker(text, start) {
        spans.push(Span { start: start + secret.start(), end: start + secret.end(), kind: &format.kind });
    }
    // The next secret may start right after this one.
    Some(start + secret.end())
}

impl Before {
    /// Whether the text before `position` fits.
    fn fits(self, text: &[u8], position: usize) -> bool {
        let before = text.get(..position).unwrap_or_default();
        match self {
            Self::Anything | Self::Run => true,
            Self::Digit => before.last().is_some_and(u8::is_ascii_digit),
            Self::Edge => !before.last().is_some_and(u8::is_ascii_alphanumeric) || ends_escape(before),
        }
    }
}

/// Whether a text ends with `\n`, `%3D`, `\u003d` or a terminal colour, which are not part of the next word.
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

/// The length of the letters, digits, `_` and `-` at the start of a text.
fn run_length(text: &str) -> usize {
    let is_run = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    text.bytes().position(|byte| !is_run(byte)).unwrap_or(text.len())
}
