//! Markers that stand in place of secrets: `[redacted:KIND]`.

use std::borrow::Cow;

use super::rules::RULES;

/// The kind of values that are secret because of their key.
pub(super) const ASSIGNMENT: &str = "assignment";

/// Longer kinds are not recognized.
const MAX_KIND_BYTES: usize = 64;
/// The start of a marker; its kind and `]` follow.
const MARKER_START: &str = "[redacted:";

/// A range of a text to replace by a marker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: &'static str,
}

pub(super) fn push_marker(output: &mut String, kind: &str) {
    output.push_str(MARKER_START);
    output.push_str(kind);
    output.push(']');
}

/// The ranges of markers in a text. Only known kinds count, so that a secret cannot hide in a made-up marker.
pub(super) fn find_markers(text: &str) -> Vec<(usize, usize)> {
    let marker = |(start, _): (usize, &str)| {
        let inner = text.get(start + MARKER_START.len()..)?;
        let length = inner.bytes().position(|byte| !is_kind_byte(byte))?;
        let is_marker = inner.as_bytes().get(length) == Some(&b']') && is_kind(inner.get(..length)?);
        is_marker.then_some((start, start + MARKER_START.len() + length + 1))
    };
    text.match_indices(MARKER_START).filter_map(marker).collect()
}

fn is_kind(kind: &str) -> bool {
    kind == ASSIGNMENT || RULES.has_kind(kind)
}

pub(super) fn is_kind_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

/// Extends a span over the markers it overlaps; none if it holds no word besides them.
pub(super) fn extend_over_markers(text: &str, markers: &[(usize, usize)], mut span: Span) -> Option<Span> {
    let first = markers.partition_point(|&(_, end)| end <= span.start);
    let mut checked_to = span.start;
    let mut holds_word = false;
    for &(start, end) in markers.iter().skip(first).take_while(|&&(start, _)| start < span.end) {
        holds_word |= has_word(text.get(checked_to..start.max(checked_to))?);
        span.start = span.start.min(start);
        checked_to = end;
    }
    holds_word |= checked_to < span.end && has_word(text.get(checked_to..span.end)?);
    span.end = span.end.max(checked_to);
    (holds_word || checked_to == span.start).then_some(span)
}

fn has_word(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Whether a text consists of markers only.
pub(super) fn is_redacted(text: &str) -> bool {
    let markers = find_markers(text);
    let whole = Span { start: 0, end: text.len(), kind: ASSIGNMENT };
    !markers.is_empty() && extend_over_markers(text, &markers, whole).is_none()
}

pub(super) fn without_markers(text: &str) -> Cow<'_, str> {
    let markers = find_markers(text);
    if markers.is_empty() {
        return Cow::Borrowed(text);
    }
    let starts = markers.iter().map(|&(start, _)| start).chain([text.len()]);
    let ends = [0].into_iter().chain(markers.iter().map(|&(_, end)| end));
    ends.zip(starts).filter_map(|(end, start)| text.get(end..start)).collect()
}

/// Whether a position is inside the kind of a marker, whose words are not keys.
pub(super) fn is_in_marker(text: &str, position: usize) -> bool {
    let before = text.as_bytes().get(..position).unwrap_or_default();
    let kind_length =
        before.iter().rev().take(MAX_KIND_BYTES).take_while(|byte| is_kind_byte(**byte)).count();
    before
        .get(..position.saturating_sub(kind_length))
        .is_some_and(|before| before.ends_with(MARKER_START.as_bytes()))
}
