//! Short, safe excerpts of text from servers, for messages.

use toolyard_core::escape_unsafe;

/// The first `max_chars` characters on one line, with unsafe characters escaped.
pub(crate) fn preview(text: &str, max_chars: usize) -> String {
    let cut: String = text.chars().take(max_chars).collect();
    let ellipsis = if cut.len() < text.len() { "…" } else { "" };
    let cut = cut.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    format!("{}{ellipsis}", escape_unsafe(&cut))
}
