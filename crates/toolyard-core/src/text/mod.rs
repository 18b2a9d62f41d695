//! Text from outside: characters that deceive a reader or control a terminal, and line breaks.

mod lines;
mod unsafe_characters;
mod untrusted_json;

pub use lines::{NON_LF_LINE_BREAKS, join_json_lines, normalize_line_breaks, single_line};
pub use unsafe_characters::{
    ChunkEscaper, ChunkSanitizer, UnsafeKind, UnsafeSpan, escape_unsafe, find_unsafe, is_attack, is_visible,
    sanitize,
};
pub(crate) use untrusted_json::each_json_string;
pub use untrusted_json::{escape_json, sanitize_json};
