//! Reads the JSON value at the start of a text that a model wrote.

use serde_json::{Deserializer, Value};

/// Longer documents are not parsed.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// A text that does not start with a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonTextError {
    /// The model ended its reply in the middle of JSON.
    ///
    /// Remedy: raise `max_tokens` of `[models.NAME]`, or use a larger model.
    #[error("unexpected end of JSON")]
    Incomplete,
    /// The model wrote JSON with a mistake, or none.
    ///
    /// Remedy: use a larger model, or set `tool_calling` of `[models.NAME]` to `"schema"` or `"native"`.
    #[error("invalid JSON")]
    Invalid,
}

/// Parses the value at the start of a text. Returns it with the number of bytes used.
pub fn parse_prefix(text: &str) -> Result<(Value, usize), JsonTextError> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok((value, values.byte_offset())),
        Some(Err(error)) if !error.is_eof() => Err(JsonTextError::Invalid),
        Some(Err(_)) | None => Err(JsonTextError::Incomplete),
    }
}

/// The text without the start of the code block that it begins with, if it does.
pub fn without_fence(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix("```") {
        Some(block) => block.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim_start(),
        None => text,
    }
}

/// Parses the object or list at the start of a text, perhaps in a code block. Text after it is ignored.
pub fn parse_document(text: &str) -> Result<Value, JsonTextError> {
    let text = without_fence(text);
    if text.len() > MAX_DOCUMENT_BYTES || !text.starts_with(['{', '[']) {
        return Err(JsonTextError::Invalid);
    }
    parse_prefix(text).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_may_stand_in_a_code_block_and_before_other_text() {
        let expected = Ok(json!({"a": [1, "```"]}));
        for text in [
            "{\"a\": [1, \"```\"]}",
            " {\"a\": [1, \"```\"]} and more",
            "```json\n{\"a\": [1, \"```\"]}\n```\nmore",
            "```\n{\"a\": [1, \"```\"]}",
        ] {
            assert_eq!(parse_document(text), expected, "{text}");
        }
        for text in ["", "no JSON", "12", "```json", "{'a': 1}", "{\"a\": 1,}", "[1 2]", "{\"a\": \"b\"c\"}"]
        {
            assert_eq!(parse_document(text), Err(JsonTextError::Invalid), "{text}");
        }
    }

    #[test]
    fn a_truncated_value_is_incomplete() {
        let text = r#"{"name": "get_time", "arguments": {"a": [1, -2.5e1, true, "x\u00e9\n"]}}"#;
        for cut in 1..text.len() {
            assert_eq!(parse_document(text.get(..cut).unwrap()), Err(JsonTextError::Incomplete), "{cut}");
        }
        assert_eq!(parse_prefix(text).unwrap().1, text.len());
    }

    #[test]
    fn deep_nesting_is_rejected() {
        assert_eq!(parse_document(&"[".repeat(100_000)), Err(JsonTextError::Invalid));
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "[{\\[]?[\\[\\]{}\"',:\\\\/*a-z0-9 \n\u{e9}`]{0,60}") {
            let _ = parse_document(&text);
            if let Ok((_, used)) = parse_prefix(&text) {
                prop_assert!(text.is_char_boundary(used));
            }
        }
    }
}
