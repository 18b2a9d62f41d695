//! Unsafe characters in JSON: removed from its strings for MCP clients, written as JSON escapes for a terminal.

use std::{borrow::Cow, fmt::Write as _};

use serde_json::Value;

use super::unsafe_characters::{escape_unsafe, find_unsafe, sanitize};
use crate::{RawJson, json::grammar::read_string};

/// [`sanitize`] for JSON, which stays valid JSON. Also returns whether anything changed.
///
/// Unsafe characters are removed from values. In keys they are escaped, so that no key turns into another one. Order,
/// number spelling and spacing survive. The time is linear in the length of the text, and text of any nesting is accepted.
///
/// ```
/// # use toolyard_core::{RawJson, text::sanitize_json};
/// let result = RawJson::parse(r#"{"text":"a\u001b[31mb\u202ec","n":1.0}"#.to_owned())?;
/// let (safe, changed) = sanitize_json(&result);
/// assert_eq!(safe.get(), r#"{"text":"abc","n":1.0}"#);
/// assert!(changed);
/// # Ok::<(), toolyard_core::InvalidJson>(())
/// ```
pub fn sanitize_json(json: &RawJson) -> (RawJson, bool) {
    let text = json.get();
    if !may_be_unsafe(text) {
        return (json.clone(), false);
    }
    let mut output = String::new();
    let mut copied = 0;
    each_json_string(text, |start, end, decoded, is_key| {
        let clean = if is_key { escape_unsafe(decoded) } else { sanitize(decoded).0 };
        if let Cow::Owned(clean) = clean {
            output.push_str(text.get(copied..start).unwrap_or_default());
            output.push_str(&Value::String(clean).to_string());
            copied = end;
        }
    });
    if copied == 0 {
        return (json.clone(), false);
    }
    output.push_str(text.get(copied..).unwrap_or_default());
    // Only whole strings were replaced, so this is JSON. If it were not, none of it would get out.
    (RawJson::parse(output).unwrap_or_else(|_| RawJson::from_value(&Value::Null)), true)
}

/// JSON text with every unsafe character as a JSON escape such as `\u202e`: safe on a terminal, and the same value for a
/// parser.
pub fn escape_json(text: &str) -> Cow<'_, str> {
    let spans = find_unsafe(text);
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut output = String::with_capacity(text.len() + spans.len() * 6);
    let mut copied = 0;
    for span in &spans {
        output.push_str(text.get(copied..span.start).unwrap_or_default());
        let unsafe_text = text.get(span.start..span.end).unwrap_or_default();
        unsafe_text.chars().for_each(|letter| push_json_escape(&mut output, letter));
        copied = span.end;
    }
    output.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(output)
}

fn push_json_escape(output: &mut String, letter: char) {
    // The printable characters of a terminal escape stay. A carriage return can only stand between tokens.
    if matches!(letter, ' '..='~' | '\r') {
        output.push(if letter == '\r' { '\n' } else { letter });
        return;
    }
    for unit in letter.encode_utf16(&mut [0; 2]) {
        // Writing to a string cannot fail.
        let _ = write!(output, "\\u{unit:04x}");
    }
}

/// Whether JSON text can hold unsafe characters at all. Almost all text is printable ASCII without escapes, which this
/// tells in one pass that compilers vectorize.
fn may_be_unsafe(text: &str) -> bool {
    const UNSAFE: u8 = 0x80;
    const ESCAPE: u8 = 1;
    let flags = text.bytes().fold(0, |flags, byte| {
        let is_delete = if byte == 0x7f { UNSAFE } else { 0 };
        flags | (byte & UNSAFE) | is_delete | u8::from(byte == b'\\')
    });
    flags & UNSAFE != 0 || flags & ESCAPE != 0 && has_control_escape(text.as_bytes())
}

/// Whether there is an escape other than of a quote, a slash, a backslash, a line feed or a tab.
fn has_control_escape(mut rest: &[u8]) -> bool {
    while let Some(at) = memchr::memchr(b'\\', rest) {
        if matches!(rest.get(at + 1), Some(b'u' | b'b' | b'f' | b'r')) {
            return true;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    false
}

/// Visits every string: where it starts and ends with its quotes, its decoded text, and whether it is a key.
pub(crate) fn each_json_string(text: &str, mut visit: impl FnMut(usize, usize, &str, bool)) {
    let bytes = text.as_bytes();
    let mut position = 0;
    while let Some(found) = bytes.get(position..).and_then(|rest| memchr::memchr(b'"', rest)) {
        let start = position + found;
        let inside = text.get(start + 1..).unwrap_or_default();
        let Some((decoded, after)) = read_string(inside) else { return };
        let end = text.len() - after.len();
        // In valid JSON a colon follows a key and nothing else.
        let is_key = after.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        visit(start, end, &decoded, is_key);
        position = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn sanitized(text: &str) -> String {
        sanitize_json(&RawJson::parse(text.to_owned()).unwrap()).0.get().to_owned()
    }

    #[test]
    fn unsafe_characters_are_removed_from_values_and_escaped_in_keys() {
        assert_eq!(sanitized("{\"a\": [\"x\u{202e}y\", 1.0, \"ü\"]}"), "{\"a\": [\"xy\", 1.0, \"ü\"]}");
        assert_eq!(sanitized(r#"["\ud83d\ude00\udb40\udc41"]"#), "[\"😀\"]");
        assert_eq!(sanitized("{\"con\u{200b}tent\" : \"x\"}"), r#"{"con\\u{200b}tent" : "x"}"#);
        assert_eq!(sanitized("\"\u{9b}31mred\\\"\""), r#""red\"""#);
    }

    #[test]
    fn safe_json_is_shared_and_unchanged() {
        for text in
            [r#"{"b":1.0,"a":"x\n\t\"\\ \/"}"#, "[\"中文 👨‍👩‍👧\", \"a\\r\\nb\", \"\\u00fc\"]", "7", "\"\""]
        {
            let json = RawJson::parse(text.to_owned()).unwrap();
            let (safe, changed) = sanitize_json(&json);
            assert!(!changed, "{text}");
            assert!(std::ptr::eq(safe.get(), json.get()), "{text}");
        }
    }

    #[test]
    fn json_for_a_terminal_is_the_same_value() {
        let value = json!({"a\u{202e}": "x\u{9b}31m\u{85}\u{e0041}\u{200b}y", "b": ["\u{1b}[2J", "\u{61c}"]});
        let text = value.to_string();
        let escaped = escape_json(&text);
        assert!(find_unsafe(&escaped).is_empty(), "{escaped}");
        assert!(escaped.contains("\\u202e") && escaped.contains("\\udb40\\udc41"), "{escaped}");
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        assert!(matches!(escape_json("{\n  \"a\": \"中文\"\n}"), Cow::Borrowed(_)));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let letter = prop_oneof![
            any::<char>(),
            proptest::sample::select(vec![
                '\u{1b}',
                '\u{9b}',
                '[',
                '"',
                '\\',
                'm',
                '\u{202e}',
                '\u{e0041}',
                '葛',
                '\u{e0100}',
                '\r'
            ]),
        ];
        let text = proptest::collection::vec(letter, 0..12)
            .prop_map(|letters: Vec<char>| letters.into_iter().collect::<String>());
        let leaf = text.prop_map(|text: String| json!({ text.clone(): text, "n": 1 }));
        leaf.prop_recursive(3, 16, 4, |inner| proptest::collection::vec(inner, 0..4).prop_map(Value::Array))
    }

    fn assert_safe(value: &Value) {
        match value {
            Value::String(text) => assert_eq!(find_unsafe(text), []),
            Value::Array(items) => items.iter().for_each(assert_safe),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                assert_eq!(find_unsafe(key), []);
                assert_safe(value);
            }),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn no_unsafe_character_survives_in_any_json(value in any_json()) {
            let (safe, changed) = sanitize_json(&RawJson::from_value(&value));
            assert_safe(&safe.to_value());
            prop_assert_eq!(changed, safe.to_value() != value);
        }

        #[test]
        fn escaping_for_a_terminal_keeps_any_value(value in any_json()) {
            let text = value.to_string();
            let escaped = escape_json(&text);
            prop_assert_eq!(find_unsafe(&escaped), []);
            prop_assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        }
    }
}
