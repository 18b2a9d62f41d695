//! Bounded, single-line text for messages and lists.

use toolyard_core::{sanitize, text::single_line};

/// Characters of an unknown name that an error message repeats.
pub(crate) const MAX_ECHOED_NAME_CHARS: usize = 64;
/// Characters of an invalid text that an error message repeats.
#[cfg(feature = "skills")]
pub(crate) const MAX_EXCERPT_CHARS: usize = 200;

/// The text on one line: unsafe characters are removed, every run of white space becomes one space.
pub(crate) fn one_line(text: &str) -> String {
    single_line(&sanitize(text).0)
}

/// At most `max_chars` characters, with an ellipsis where the text was cut.
pub(crate) fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sequences_are_removed() {
        assert_eq!(sanitize("\u{1b}[31;1mred\u{1b}[0m\u{7}\u{202e} ok\n").0, "red ok\n");
        assert_eq!(one_line("a\r\n  b\tc\u{0}"), "a b c");
    }

    #[test]
    fn invisible_characters_are_removed_and_joiners_stay() {
        let hidden =
            "\u{61c}\u{200b}\u{200e}\u{200f}\u{202a}\u{202e}\u{2060}\u{2064}\u{2066}\u{2069}\u{feff}";
        assert_eq!(one_line(&format!("a{hidden}b\u{e0001}\u{e0041}\u{e007f}c")), "abc");
        let joined = "\u{1f469}\u{200d}\u{1f4bb} می\u{200c}خواهم";
        assert_eq!(one_line(joined), joined);
    }

    #[test]
    fn truncation_counts_characters() {
        assert_eq!(truncate("中文字", 2), "中文…");
        assert_eq!(truncate("中文", 2), "中文");
    }
}
