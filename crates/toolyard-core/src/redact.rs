//! Takes secrets out of text and JSON before anything is written down.
//!
//! The rules are data (`redact/rules.json`): formats that are known by their looks, words of keys whose values
//! are secret, and words that are no secret wherever they stand. Text is scanned for the rules' literals in
//! one pass; a pattern runs only where its literal was found, and only from there.

mod assignment;
mod json;
mod rules;
mod telling;

use std::borrow::Cow;

pub use json::redact_json;
use rules::RULE_BOOK;

/// What stands where a value was taken away because of the name it stood under.
const ASSIGNMENT: &str = "assignment";

/// How a replacement begins; its kind and `]` follow.
const MARKER_START: &str = "[redacted:";

/// Taking something away can lay bare what a rule did not see before, so the text is read again until nothing
/// is found. Two rounds are usual; the bound is for texts made to need more.
const ROUNDS: usize = 16;

/// A piece of a text that is to be replaced.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    kind: &'static str,
}

/// Replaces what looks like a secret by `[redacted:KIND]`. Borrowed when there is none.
///
/// ```
/// let line = "login with password=hunter2 next";
/// assert_eq!(toolyard_core::redact(line), "login with password=[redacted:assignment] next");
/// ```
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut current = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        match redact_once(&current) {
            Some(next) => current = Cow::Owned(next),
            None => break,
        }
    }
    current
}

fn redact_once(text: &str) -> Option<String> {
    let mut spans = Vec::new();
    RULE_BOOK.find(text, &mut spans);
    assignment::find(text, &mut spans);
    if spans.is_empty() {
        return None;
    }
    let markers = markers(text);
    let spans = merge(spans.into_iter().filter_map(|span| beside_markers(text, &markers, span)).collect());
    if spans.is_empty() {
        return None;
    }
    let mut output = String::with_capacity(text.len());
    let mut copied = 0;
    for span in &spans {
        output.push_str(text.get(copied..span.start).unwrap_or_default());
        push_marker(&mut output, span.kind);
        copied = span.end;
    }
    output.push_str(text.get(copied..).unwrap_or_default());
    Some(output)
}

fn push_marker(output: &mut String, kind: &str) {
    output.push_str(MARKER_START);
    output.push_str(kind);
    output.push(']');
}

/// Spans that touch become one. The kind of the widest stands for all; among equals the first found, so that a
/// known format wins over the name it was assigned to.
fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    let mut widest = 0;
    for span in spans {
        let width = span.end - span.start;
        match merged.last_mut() {
            Some(last) if span.start < last.end => {
                last.end = last.end.max(span.end);
                if width > widest {
                    last.kind = span.kind;
                    widest = width;
                }
            }
            _ => {
                merged.push(span);
                widest = width;
            }
        }
    }
    merged
}

/// Where earlier replacements stand. Only kinds that exist count: nobody hides a secret in a made-up one.
fn markers(text: &str) -> Vec<(usize, usize)> {
    let marker = |(start, _): (usize, &str)| {
        let inner = text.get(start + MARKER_START.len()..)?;
        let length = inner.bytes().position(|byte| !is_kind_byte(byte))?;
        let known = inner.as_bytes().get(length) == Some(&b']') && is_kind(inner.get(..length)?);
        known.then_some((start, start + MARKER_START.len() + length + 1))
    };
    text.match_indices(MARKER_START).filter_map(marker).collect()
}

fn is_kind(kind: &str) -> bool {
    kind == ASSIGNMENT || RULE_BOOK.has_kind(kind)
}

fn is_kind_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

/// Grows a span over the earlier replacements it cuts; nothing when it holds no word beside them.
fn beside_markers(text: &str, markers: &[(usize, usize)], mut span: Span) -> Option<Span> {
    let first = markers.partition_point(|&(_, end)| end <= span.start);
    let mut rest = span.start;
    let mut holds_word = false;
    for &(start, end) in markers.iter().skip(first).take_while(|&&(start, _)| start < span.end) {
        holds_word |= has_word(text.get(rest..start.max(rest))?);
        span.start = span.start.min(start);
        rest = end;
    }
    holds_word |= rest < span.end && has_word(text.get(rest..span.end)?);
    span.end = span.end.max(rest);
    (holds_word || rest == span.start).then_some(span)
}

fn has_word(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Whether nothing but earlier replacements stands here.
fn is_redacted(text: &str) -> bool {
    let markers = markers(text);
    let whole = Span { start: 0, end: text.len(), kind: ASSIGNMENT };
    !markers.is_empty() && beside_markers(text, &markers, whole).is_none()
}

/// A text without its earlier replacements.
fn without_markers(text: &str) -> Cow<'_, str> {
    let markers = markers(text);
    if markers.is_empty() {
        return Cow::Borrowed(text);
    }
    let starts = markers.iter().map(|&(start, _)| start).chain([text.len()]);
    let ends = [0].into_iter().chain(markers.iter().map(|&(_, end)| end));
    ends.zip(starts).filter_map(|(end, start)| text.get(end..start)).collect()
}

/// Whether a position lies in the kind of an earlier replacement, whose words are no keys.
fn is_in_marker(text: &str, position: usize) -> bool {
    let before = text.as_bytes().get(..position).unwrap_or_default();
    let kind = before.iter().rev().take(64).take_while(|byte| is_kind_byte(**byte)).count();
    before
        .get(..position.saturating_sub(kind))
        .is_some_and(|before| before.ends_with(MARKER_START.as_bytes()))
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
