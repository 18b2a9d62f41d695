//! Short, safe excerpts of text from servers, for messages.

use toolyard_core::escape_unsafe;

/// Characters of a name in messages.
pub(crate) const MAX_NAME_CHARS_SHOWN: usize = 64;

/// The first `max_chars` characters on one line, with unsafe characters escaped.
pub(crate) fn preview(text: &str, max_chars: usize) -> String {
    let excerpt: String = text.chars().take(max_chars).collect();
    let ellipsis = if excerpt.len() < text.len() { "…" } else { "" };
    let excerpt = excerpt.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    format!("{}{ellipsis}", escape_unsafe(&excerpt))
}
