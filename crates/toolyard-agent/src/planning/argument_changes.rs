//! Describes what a repair changed in the arguments of a call.

use serde_json::{Map, Value};

use crate::escape::{self, display_name};

/// Characters of a value that are shown.
const MAX_VALUE_CHARS: usize = 120;

/// A line for each argument that differs, with its value before and after.
pub(crate) fn argument_changes(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let left_out = before.iter().filter(|(name, _)| !after.contains_key(*name));
    let left_out =
        left_out.map(|(name, value)| format!("`{}`: left out `{}`", display_name(name), shown(value)));
    let others = after.iter().filter(|(name, value)| before.get(*name) != Some(*value));
    let others = others.map(|(name, value)| match before.get(name) {
        Some(old) => format!("`{}`: `{}` became `{}`", display_name(name), shown(old), shown(value)),
        None => format!("`{}`: added `{}`", display_name(name), shown(value)),
    });
    left_out.chain(others).collect()
}

/// A value on one line, without markup that a model could take for a message.
fn shown(value: &Value) -> String {
    let line = escape::sanitized_line(&value.to_string());
    let text = escape::markup(&line);
    let mut short: String = text.chars().take(MAX_VALUE_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_change_is_shown_with_its_value_before_and_after() {
        let (Value::Object(before), Value::Object(after)) = (
            json!({"path": "a.txt", "limit": "5", "cursor": null, "text": "x".repeat(500)}),
            json!({"path": "a.txt", "limit": 5, "text": "y", "repo": "/code"}),
        ) else {
            panic!("no objects")
        };
        let changes = argument_changes(&before, &after);
        assert_eq!(changes[0], "`cursor`: left out `null`");
        assert_eq!(changes[1], "`limit`: `\"5\"` became `5`");
        assert!(changes[2].starts_with("`text`: `\"xxx") && changes[2].ends_with("x…` became `\"y\"`"));
        assert_eq!(changes[3], "`repo`: added `\"/code\"`");
        assert!(argument_changes(&after, &after).is_empty());
    }
}
