//! Makes text from servers fit for error messages and logs.

use toolyard_core::is_visible;

/// Longer texts are truncated to this many characters.
const MAX_LINE_CHARS: usize = 200;

/// The beginning of a text on one line, without control and invisible characters.
pub(crate) fn sanitize_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if line.chars().count() >= MAX_LINE_CHARS {
            break;
        }
        if !line.is_empty() && !word.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|&character| is_visible(character)).take(MAX_LINE_CHARS + 1));
    }
    if let Some((end, _)) = line.char_indices().nth(MAX_LINE_CHARS) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// The text of an HTML page without its tags; any other text unchanged.
pub(crate) fn strip_html_tags(text: &str) -> String {
    if !text.trim_start().starts_with('<') {
        return text.to_owned();
    }
    let mut in_tag = false;
    let visible = text.chars().filter_map(|character| match character {
        '<' => {
            in_tag = true;
            Some(' ')
        }
        '>' => {
            in_tag = false;
            None
        }
        character => (!in_tag).then_some(character),
    });
    visible.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_server_becomes_one_visible_line() {
        assert_eq!(sanitize_line("a\u{1b}[31m\r\n\r\n b\u{202e}\u{e0041}c"), "a [31m bc");
        assert_eq!(sanitize_line(&"é".repeat(500)).chars().count(), 201);
        assert_eq!(sanitize_line(""), "");
        let page = "<!DOCTYPE html>\n<html><title>Error</title>\n<pre>Cannot POST /sse</pre></html>";
        assert_eq!(sanitize_line(&strip_html_tags(page)), "Error Cannot POST /sse");
        assert_eq!(strip_html_tags("1 < 2"), "1 < 2", "not a page");
    }
}
