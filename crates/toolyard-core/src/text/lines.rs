//! Line breaks: in foreign text, where many characters end a line, and in JSON that must stay on one line.

/// Characters that end a line for some reader, besides the line feed.
pub const NON_LF_LINE_BREAKS: [char; 6] = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// The text with every kind of line break as a line feed.
pub fn normalize_line_breaks(text: &str) -> String {
    text.replace("\r\n", "\n").replace(NON_LF_LINE_BREAKS, "\n")
}

/// The words of a text on one line, separated by single spaces.
pub fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Puts JSON on one line, as line-delimited framing requires. In valid JSON, `\n` and `\r` occur only between tokens, so a
/// space in their place does not change the value.
pub fn join_json_lines(mut json: &mut [u8]) {
    while let Some(at) = memchr::memchr2(b'\n', b'\r', json) {
        let Some((line_break, rest)) = json.get_mut(at..).and_then(<[u8]>::split_first_mut) else { return };
        *line_break = b' ';
        json = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_break_becomes_a_line_feed() {
        assert_eq!(normalize_line_breaks("a\r\nb\u{2028}c\rd\u{85}e"), "a\nb\nc\nd\ne");
        assert_eq!(single_line(" a\r\n  b\tc "), "a b c");
    }

    #[test]
    fn json_on_one_line_keeps_its_length_and_value() {
        let mut json = b"{\r\n  \"a\": \"x\\ny\"\n}".to_vec();
        join_json_lines(&mut json);
        assert_eq!(json, b"{    \"a\": \"x\\ny\" }");
    }
}
