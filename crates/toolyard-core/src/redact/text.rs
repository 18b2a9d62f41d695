//! Redacts text.

use std::borrow::Cow;

use super::{
    assignment, formats,
    marker::{Span, extend_over_markers, find_markers, push_marker},
};

/// A replacement can expose something that no rule matched before, so the text is scanned until nothing is found. Two
/// rounds are usual; the bound is for adversarial texts.
const MAX_ROUNDS: usize = 16;

/// Replaces secrets by `[redacted:KIND]`. Borrowed if there is none.
///
/// ```
/// let line = "login with password=hunter2 next";
/// assert_eq!(toolyard_core::redact(line), "login with password=[redacted:assignment] next");
/// ```
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut current = Cow::Borrowed(text);
    for _ in 0..MAX_ROUNDS {
        match redact_once(&current) {
            Some(next) => current = Cow::Owned(next),
            None => break,
        }
    }
    current
}

fn redact_once(text: &str) -> Option<String> {
    let mut spans = Vec::new();
    formats::find(text, &mut spans);
    assignment::find(text, &mut spans);
    if spans.is_empty() {
        return None;
    }
    let markers = find_markers(text);
    let spans =
        merge(spans.into_iter().filter_map(|span| extend_over_markers(text, &markers, span)).collect());
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

/// Merges spans that overlap. The widest names the kind; among equals the first found, so that a known format wins over the
/// key it was assigned to.
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
