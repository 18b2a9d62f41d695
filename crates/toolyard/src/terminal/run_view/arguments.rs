//! A call's arguments for approvers: complete if they fit, otherwise their beginning and end.

use unicode_width::UnicodeWidthChar as _;

use crate::terminal::sanitize;

/// Narrower terminals wrap the lines themselves.
const MIN_WIDTH: usize = 20;
/// Values nested deeper are not indented further, so that they are not pushed off the line.
const MAX_INDENT_DEPTH: usize = 12;

/// All arguments, in lines of this width.
pub(crate) fn all_lines(arguments: &str, width: usize) -> Vec<String> {
    let text = sanitize(arguments);
    let wrapped = wrap(&text, width);
    if wrapped.len() <= 1 { wrapped } else { wrap(&indent_json(&text), width) }
}

/// At most `max_lines` lines, and whether these are all. The omitted part is counted and never at the end, where a command
/// could hide.
pub(super) fn preview_lines(arguments: &str, width: usize, max_lines: usize) -> (Vec<String>, bool) {
    let lines = all_lines(arguments, width);
    if lines.len() <= max_lines {
        return (lines, true);
    }
    let tail = max_lines / 3;
    let head = max_lines.saturating_sub(tail + 1);
    let end = lines.len().saturating_sub(tail);
    let omitted: usize =
        lines.iter().take(end).skip(head).map(|line| line.trim_start().chars().count()).sum();
    let mut shown: Vec<String> = lines.iter().take(head).cloned().collect();
    shown.push(format!("… {omitted} characters omitted; [d]etails shows all …"));
    shown.extend(lines.into_iter().skip(end));
    (shown, false)
}

/// Compact JSON with a line for each value. What the text says stays as it is, so that nothing is lost in parsing it, and so
/// does what follows the JSON.
fn indent_json(json: &str) -> String {
    let (mut output, mut depth) = (String::with_capacity(json.len() * 2), 0_usize);
    let (mut is_string, mut is_escaped) = (false, false);
    let mut letters = json.chars().peekable();
    let line_break = |output: &mut String, depth: usize| {
        output.push('\n');
        output.extend(std::iter::repeat_n("  ", depth.min(MAX_INDENT_DEPTH)));
    };
    while let Some(letter) = letters.next() {
        if is_string {
            is_string = letter != '"' || is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            output.push(letter);
            continue;
        }
        match letter {
            '{' | '[' if letters.peek().is_some_and(|next| !matches!(next, '}' | ']')) => {
                depth += 1;
                output.push(letter);
                line_break(&mut output, depth);
            }
            '}' | ']' if !output.ends_with(['{', '[']) => {
                depth = depth.saturating_sub(1);
                line_break(&mut output, depth);
                output.push(letter);
                if depth == 0 {
                    output.extend(letters);
                    return output;
                }
            }
            ',' => {
                output.push(letter);
                line_break(&mut output, depth);
            }
            ':' => output.push_str(": "),
            letter => {
                is_string = letter == '"';
                output.push(letter);
            }
        }
    }
    output
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let (mut current, mut used) = (String::new(), 0);
        for letter in line.chars() {
            let columns = letter.width().unwrap_or(1);
            if used + columns > width.max(MIN_WIDTH) {
                lines.push(std::mem::take(&mut current));
                used = 0;
            }
            current.push(letter);
            used += columns;
        }
        lines.push(current);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_fit_are_shown_completely() {
        assert_eq!(preview_lines(r#"{"text":1024}"#, 80, 20), (vec![r#"{"text":1024}"#.to_owned()], true));
        let mail =
            json!({"to": ["ada@example.com", "bob@example.com"], "subject": "Lunch", "text": "At noon?"});
        insta::assert_snapshot!(preview_lines(&mail.to_string(), 40, 20).0.join("\n"), @r#"
        {
          "to": [
            "ada@example.com",
            "bob@example.com"
          ],
          "subject": "Lunch",
          "text": "At noon?"
        }
        "#);
    }

    #[test]
    fn what_follows_the_arguments_stays_as_it_is() {
        let text = r#"{"a":["x, y: {z}"]}; note: from skill:notes, [b]"#;
        assert_eq!(
            indent_json(text),
            "{\n  \"a\": [\n    \"x, y: {z}\"\n  ]\n}; note: from skill:notes, [b]"
        );
    }

    #[test]
    fn the_end_of_long_arguments_is_shown() {
        let hidden = json!({"command": format!("echo hello{}; rm -rf /", " ".repeat(20_000))}).to_string();
        let (shown, is_complete) = preview_lines(&hidden, 80, 20);
        assert_eq!((shown.len(), is_complete), (20, false));
        let text = shown.join("\n");
        assert!(text.contains("echo hello") && text.contains("; rm -rf /"), "{text}");
        assert!(text.contains("characters omitted"), "{text}");
        let whole = all_lines(&hidden, 80).concat();
        assert!(whole.contains(&" ".repeat(20_000)), "the details are complete");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_a_preview_has_at_most_its_number_of_lines(text in ".{0,2000}", width in 20_usize..120) {
            let arguments = json!({"text": text}).to_string();
            let lines = all_lines(&arguments, width);
            prop_assert!(lines.iter().all(|line| unicode_width::UnicodeWidthStr::width(line.as_str()) <= width + 2));
            prop_assert!(preview_lines(&arguments, width, 20).0.len() <= 20);
        }

        #[test]
        fn indentation_changes_only_what_is_between_values(text in any::<String>(), list in proptest::collection::vec(any::<i64>(), 0..9)) {
            let arguments = json!({"text": text, "list": list, "none": {}, "empty": [], "nested": [{"a": [[]]}]});
            let indented = indent_json(&arguments.to_string());
            prop_assert_eq!(&indented, &serde_json::to_string_pretty(&arguments).unwrap());
        }
    }
}
