//! Makes text from outside safe to show: no control characters, bounded length.

/// The text without control characters, terminal escapes and what nobody sees: zero-width characters, changes of
/// direction, tags. Line breaks, tabs and the joiners that some scripts and emoji need stay.
pub(crate) fn without_controls(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => clean.push(letter),
            '\u{1b}' => skip_escape(&mut letters),
            _ if letter.is_control() || is_invisible(letter) => {}
            _ => clean.push(letter),
        }
    }
    clean
}

/// The text on one line: control characters go, every run of white space becomes one space.
pub(crate) fn one_line(text: &str) -> String {
    let clean = without_controls(text);
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `limit` characters, with an ellipsis where something was cut.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// Skips the rest of a terminal sequence such as `ESC [ 31 m`, so that no `[31m` stays behind.
fn skip_escape(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if letters.next_if_eq(&'[').is_none() {
        return;
    }
    while letters.next_if(|letter| matches!(letter, '0'..='?' | ' '..='/')).is_some() {}
    letters.next_if(|letter| matches!(letter, '@'..='~'));
}

/// Characters that can hide words from a person, or show them in another order than a model reads them.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sequences_leave_nothing_behind() {
        assert_eq!(without_controls("\u{1b}[31;1mred\u{1b}[0m\u{7}\u{202e} ok\n"), "red ok\n");
        assert_eq!(one_line("a\r\n  b\tc\u{0}"), "a b c");
    }

    #[test]
    fn what_nobody_sees_is_left_out_and_joiners_stay() {
        let hidden =
            "\u{61c}\u{200b}\u{200e}\u{200f}\u{202a}\u{202e}\u{2060}\u{2064}\u{2066}\u{2069}\u{feff}";
        assert_eq!(without_controls(&format!("a{hidden}b\u{e0001}\u{e0041}\u{e007f}c")), "abc");
        let joined = "\u{1f469}\u{200d}\u{1f4bb} می\u{200c}خواهم";
        assert_eq!(without_controls(joined), joined);
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(shortened("中文字", 2), "中文…");
        assert_eq!(shortened("中文", 2), "中文");
    }
}
