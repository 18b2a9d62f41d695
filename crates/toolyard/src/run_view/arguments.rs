//! What a call is made with, for whoever decides about it: whole where it fits, else its beginning and its end. Pure.

use serde_json::Value;
use unicode_width::UnicodeWidthChar as _;

use crate::output::harmless;

/// Everything, in lines of this width.
pub(super) fn all_lines(arguments: &str, width: usize) -> Vec<String> {
    let text = harmless(arguments);
    let line = wrapped(&text, width);
    if line.len() <= 1 {
        return line;
    }
    let pretty =
        serde_json::from_str::<Value>(arguments).and_then(|value| serde_json::to_string_pretty(&value));
    wrapped(&pretty.map_or(text, |pretty| harmless(&pretty)), width)
}

/// At most so many lines: what is left out is counted, and is never at the end, where something could hide.
pub(super) fn shown_lines(arguments: &str, width: usize, most: usize) -> Vec<String> {
    let lines = all_lines(arguments, width);
    if lines.len() <= most {
        return lines;
    }
    let tail = most / 3;
    let head = most.saturating_sub(tail + 1);
    let end = lines.len().saturating_sub(tail);
    let left_out: usize =
        lines.iter().take(end).skip(head).map(|line| line.trim_start().chars().count()).sum();
    let mut shown: Vec<String> = lines.iter().take(head).cloned().collect();
    shown.push(format!("… {left_out} characters are left out here; [d]etails shows everything …"));
    shown.extend(lines.into_iter().skip(end));
    shown
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let (mut part, mut used) = (String::new(), 0);
        for letter in line.chars() {
            let wide = letter.width().unwrap_or(1);
            if used + wide > width.max(20) {
                lines.push(std::mem::take(&mut part));
                used = 0;
            }
            part.push(letter);
            used += wide;
        }
        lines.push(part);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_shown_whole() {
        assert_eq!(shown_lines(r#"{"text":1024}"#, 80, 20), [r#"{"text":1024}"#]);
        let mail =
            json!({"to": ["ada@example.com", "bob@example.com"], "subject": "Lunch", "text": "At noon?"});
        insta::assert_snapshot!(shown_lines(&mail.to_string(), 40, 20).join("\n"), @r#"
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
    fn what_stands_at_the_end_of_long_arguments_is_shown_too() {
        let hidden = json!({"command": format!("echo hello{}; rm -rf /", " ".repeat(20_000))}).to_string();
        let shown = shown_lines(&hidden, 80, 20);
        assert_eq!(shown.len(), 20);
        let text = shown.join("\n");
        assert!(text.contains("echo hello") && text.contains("; rm -rf /"), "{text}");
        assert!(text.contains("characters are left out here"), "{text}");
        let whole = all_lines(&hidden, 80).concat();
        assert!(whole.contains(&" ".repeat(20_000)), "nothing is lost in the details");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_is_lost(text in ".{0,2000}", width in 20_usize..120) {
            let arguments = json!({"text": text}).to_string();
            let lines = all_lines(&arguments, width);
            prop_assert!(lines.iter().all(|line| unicode_width::UnicodeWidthStr::width(line.as_str()) <= width + 2));
            prop_assert!(shown_lines(&arguments, width, 20).len() <= 20);
        }
    }
}
