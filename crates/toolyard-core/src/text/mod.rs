//! Text from outside: characters that deceive a reader or control a terminal, and line breaks.

mod lines;
mod unsafe_characters;

pub use lines::{NON_LF_LINE_BREAKS, join_json_lines, normalize_line_breaks, single_line};
pub use unsafe_characters::{
    UnsafeKind, UnsafeSpan, escape_unsafe, escape_unsafe_chunk, find_unsafe, is_attack, is_visible, sanitize,
};
