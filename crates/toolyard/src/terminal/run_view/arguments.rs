//! A call's arguments for the approval prompt: complete if they fit, otherwise their beginning and end.

use serde_json::Value;
use unicode_width::UnicodeWidthChar as _;

use crate::terminal::sanitize;

/// Narrower terminals wrap the lines themselves.
const MIN_WIDTH: usize = 20;

/// All arguments, in lines of this width.
pub(super) fn all_lines(arguments: &str, width: usize) -> Vec<String> {
    let text = sanitize(arguments);
    let wrapped = wrap(&text, width);
    if wrapped.len() <= 1 {
        return wrapped;
    }
    let pretty =
        serde_json::from_str::<Value>(arguments).and_then(|value| serde_json::to_string_pretty(&value));
    wrap(&pretty.map_or(text, |pretty| sanitize(&pretty)), width)
}

/// At most `max_lines` lines. The omitted part is counted and never at the end, where a command could hide.
pub(super) fn preview_lines(arguments: &str, width: usize, max_lines: usize) -> Vec<String> {
    let lines = all_lines(arguments, width);
    if lines.len() <= max_lines {
        return lines;
    }
    let tail = max_lines / 3;
    let head = max_lines.saturating_sub(tail + 1);
    let end = lines.len().saturating_sub(tail);
    let omitted: usize =
        lines.iter().take(end).skip(head).map(|line| line.trim_start().chars().count()).sum();
    let mut shown: Vec<String> = lines.iter().take(head).cloned().collect();
    shown.push(format!("… {omitted} characters omitted; [d]etails shows all …"));
    shown.extend(lines.into_iter().skip(end));
    shown
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
        assert_eq!(preview_lines(r#"{"text":1024}"#, 80, 20), [r#"{"text":1024}"#]);
        let mail =
            json!({"to": ["ada@example.com", "bob@example.com"], "subject": "Lunch", "text": "At noon?"});
        insta::assert_snapshot!(preview_lines(&mail.to_string(), 40, 20).join("\n"), @r#"
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
    fn the_end_of_long_arguments_is_shown() {
        let hidden = json!({"command": format!("echo hello{}; rm -rf /", " ".repeat(20_000))}).to_string();
        let shown = preview_lines(&hidden, 80, 20);
        assert_eq!(shown.len(), 20);
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
            prop_assert!(preview_lines(&arguments, width, 20).len() <= 20);
        }
    }
}
