//! The arguments of a call as the API shows them: an object, or text if the record has no complete object.

use serde_json::{Map, Value};
use toolyard_core::{RawJson, escape_unsafe, text::sanitize_json};

/// Arguments from a record. At most one field is set: none if the record has no arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::agents::api) struct RecordedArguments {
    pub(in crate::agents::api) object: Option<Map<String, Value>>,
    /// Arguments that were shortened or that have hidden characters, which are escaped.
    pub(in crate::agents::api) text: Option<String>,
}

impl RecordedArguments {
    /// Reads the arguments of a record: JSON, which may be shortened.
    pub(in crate::agents::api) fn of(recorded: &str) -> Self {
        if recorded.is_empty() {
            return Self::default();
        }
        match visible_object(recorded) {
            Some(object) => Self { object: Some(object), text: None },
            None => Self { object: None, text: Some(escape_unsafe(recorded).into_owned()) },
        }
    }
}

/// Parses a text as an object. `None` if it has hidden characters: responses drop these from the strings of an object, so an
/// approver would not see them.
fn visible_object(text: &str) -> Option<Map<String, Value>> {
    let json = RawJson::parse(text.to_owned()).ok()?;
    let (_, has_hidden) = sanitize_json(&json);
    match json.to_value() {
        Value::Object(object) if !has_hidden => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_an_object_if_the_record_has_all_of_them() {
        for recorded in [json!({}), json!({"a": [1, 2.5, null], "text": "多\nlines \"quoted\""})] {
            let found = RecordedArguments::of(&recorded.to_string());
            assert_eq!(found, RecordedArguments { object: recorded.as_object().cloned(), text: None });
        }
        assert_eq!(RecordedArguments::of(""), RecordedArguments::default());
    }

    #[test]
    fn a_record_without_a_whole_visible_object_is_shown_as_text() {
        for (recorded, shown) in [
            (r#"{"text":"aaa…"#, r#"{"text":"aaa…"#),
            (
                r#"{"text":"a" …(9 of 11 characters omitted)… "b"}"#,
                r#"{"text":"a" …(9 of 11 characters omitted)… "b"}"#,
            ),
            (r#"{"text":"a\u202eb"}"#, r#"{"text":"a\u202eb"}"#),
            ("{\"text\":\"a\u{202e}b\"}", r#"{"text":"a\u{202e}b"}"#),
            (r#"{"\u001b[2J":1}"#, r#"{"\u001b[2J":1}"#),
            ("[1]", "[1]"),
        ] {
            let found = RecordedArguments::of(recorded);
            assert_eq!(found, RecordedArguments { object: None, text: Some(shown.to_owned()) });
        }
    }
}
