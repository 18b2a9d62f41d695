//! Redacts known secrets by their exact values, whatever they look like.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::{RawJson, text::each_json_string};

/// Shorter values are too likely to be ordinary words.
const MIN_SECRET_BYTES: usize = 6;
const REDACTED: &str = "[redacted:environment]";

/// Secrets whose values are known, such as those in the settings of a server. `Debug` shows none of them.
///
/// ```
/// # use toolyard_core::SecretValues;
/// let secrets = SecretValues::new(["zebra-42-crossing".to_owned()]);
/// assert_eq!(secrets.redact("key zebra-42-crossing"), "key [redacted:environment]");
/// ```
#[derive(Default)]
pub struct SecretValues {
    /// None if there are no secrets.
    matcher: Option<AhoCorasick>,
}

impl SecretValues {
    /// Values of fewer than six bytes are ignored.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let values = values.into_iter().filter(|value| value.trim().len() >= MIN_SECRET_BYTES);
        let spellings: Vec<String> = values.flat_map(|value| spellings(&value)).collect();
        if spellings.is_empty() {
            return Self::default();
        }
        // The longest first, because one may contain another. Fails only for more patterns than memory holds.
        let matcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(spellings);
        Self { matcher: matcher.ok() }
    }

    /// The secrets among variables: the values whose name or form tells that they are secrets.
    pub fn of_variables<'v>(variables: impl IntoIterator<Item = &'v (String, String)>) -> Self {
        let is_secret = |(name, value): &&(String, String)| {
            super::redact_json(&RawJson::from_value(&serde_json::json!({ name: value }))).1
        };
        Self::new(variables.into_iter().filter(is_secret).map(|(_, value)| value.clone()))
    }

    /// Whether there is nothing to redact.
    pub fn is_empty(&self) -> bool {
        self.matcher.is_none()
    }

    /// The text with a marker in place of each secret, in linear time.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(matcher) = &self.matcher else { return Cow::Borrowed(text) };
        let mut output = String::new();
        let mut copied = 0;
        for found in matcher.find_iter(text) {
            output.push_str(text.get(copied..found.start()).unwrap_or_default());
            output.push_str(REDACTED);
            copied = found.end();
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        output.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(output)
    }

    /// [`SecretValues::redact`] for every key and string of JSON, which stays valid JSON. Also returns whether anything
    /// was replaced.
    pub fn redact_json(&self, json: &RawJson) -> (RawJson, bool) {
        let text = json.get();
        let Some(matcher) = &self.matcher else { return (json.clone(), false) };
        // A secret may be spelled with escapes.
        if !text.contains('\\') && !matcher.is_match(text) {
            return (json.clone(), false);
        }
        let mut output = String::new();
        let mut copied = 0;
        each_json_string(text, |start, end, decoded, _| {
            if let Cow::Owned(redacted) = self.redact(decoded) {
                output.push_str(text.get(copied..start).unwrap_or_default());
                output.push_str(&Value::String(redacted).to_string());
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
}

/// A value, and how it is written in JSON that is itself the text of a result: with and without escapes of characters beyond
/// ASCII.
fn spellings(value: &str) -> Vec<String> {
    let json = Value::from(value).to_string();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(&json).to_owned();
    let mut ascii = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            ascii.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    let mut spellings = vec![value.to_owned(), json, ascii];
    spellings.dedup();
    spellings
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValues(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> SecretValues {
        SecretValues::new([
            "zebra crossing".to_owned(),
            "zebra crossing \"two\"".to_owned(),
            "short".to_owned(),
        ])
    }

    #[test]
    fn exact_values_are_redacted_and_short_ones_are_not() {
        assert_eq!(secrets().redact("a zebra crossing, short"), "a [redacted:environment], short");
        assert_eq!(secrets().redact("zebra crossing \"two\"!"), "[redacted:environment]!");
        assert!(matches!(secrets().redact("nothing here"), Cow::Borrowed(_)));
        assert!(SecretValues::new([String::new()]).is_empty());
    }

    #[test]
    fn escaped_spellings_in_json_are_redacted() {
        for (text, expected) in [
            (r#"{"a":"zebra crossing","n":1.0}"#, r#"{"a":"[redacted:environment]","n":1.0}"#),
            (r#"["\u007aebra crossing"]"#, r#"["[redacted:environment]"]"#),
            (r#"["x zebra crossing \"two\""]"#, r#"["x [redacted:environment]"]"#),
            (r#"{"zebra crossing":null}"#, r#"{"[redacted:environment]":null}"#),
        ] {
            let (safe, is_changed) = secrets().redact_json(&RawJson::parse(text.to_owned()).unwrap());
            assert_eq!((safe.get(), is_changed), (expected, true));
        }
        let json = RawJson::parse(r#"["a\nb"]"#.to_owned()).unwrap();
        assert_eq!(secrets().redact_json(&json), (json, false));
    }

    #[test]
    fn json_in_a_text_is_searched_too() {
        let secrets = SecretValues::new(["pa\"ss\\wö\trd".to_owned(), "\"quoted\"".to_owned()]);
        for text in [r#"{"key":"pa\"ss\\wö\trd"}"#, r#"{"key":"pa\"ss\\w\u00f6\trd"}"#] {
            assert_eq!(secrets.redact(text), r#"{"key":"[redacted:environment]"}"#);
        }
        assert_eq!(
            secrets.redact(r#"x "quoted" \"quoted\""#),
            "x [redacted:environment] [redacted:environment]"
        );
    }

    #[test]
    fn the_name_of_a_variable_tells_whether_it_is_a_secret() {
        let variables = [("NOTES_API_KEY", "zebra crossing"), ("HOME", "/home/ann")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let secrets = SecretValues::of_variables(&variables);
        assert_eq!(secrets.redact("/home/ann: zebra crossing"), "/home/ann: [redacted:environment]");
    }

    #[test]
    fn no_secret_is_shown_by_debug() {
        assert_eq!(format!("{:?}", secrets()), "SecretValues(…)");
    }
}
