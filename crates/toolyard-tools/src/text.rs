//! Makes text from outside safe to show: no control characters, bounded length.

/// The text without control characters, terminal escapes and invisible direction changes; line breaks and tabs stay.
pub(crate) fn without_controls(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => clean.push(letter),
            '\u{1b}' => skip_escape(&mut letters),
            _ if letter.is_control() || changes_direction(letter) => {}
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

fn changes_direction(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
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
    fn cutting_counts_characters() {
        assert_eq!(shortened("中文字", 2), "中文…");
        assert_eq!(shortened("中文", 2), "中文");
    }
}
