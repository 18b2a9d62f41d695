//! Lossless JSON: numbers keep their digits, and a duplicate key is an error.

use std::{borrow::Cow, collections::HashSet};

use toolyard_core::{JsonCursor, JsonError, JsonKind};

use super::preview::MAX_NAME_CHARS_SHOWN;
use crate::json::push_quoted;

/// Nesting levels of one definition; a deeper one is never pinned. Real ones have up to 11.
pub(crate) const MAX_DEPTH: usize = 64;
/// Objects with fewer keys are searched for duplicates without a set.
const MIN_SET_KEYS: usize = 8;

/// A JSON value. `serde_json::Value` reads numbers as floats and keeps only the last of two equal keys; either could hide
/// a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonTree {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Self>),
    /// In source order, without duplicate keys.
    Object(Vec<(String, Self)>),
}

/// Why a text is not accepted as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonTreeError {
    /// A definition is nested deeper than Toolyard reads.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("nested more than {0} levels deep")]
    TooDeep(usize),
    /// Parsers disagree about which of two values with one key counts.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("duplicate key {0:?}")]
    DuplicateKey(String),
    /// A definition is not JSON, or has a string that is not Unicode.
    ///
    /// Remedy: report it to the author of the server; the tool is not offered.
    #[error("malformed value or text")]
    Malformed,
}

impl JsonTree {
    pub(crate) fn parse(text: &str, max_depth: usize) -> Result<Self, JsonTreeError> {
        let mut cursor = JsonCursor::new(text, max_depth);
        let tree = Self::read(&mut cursor)?;
        cursor.end()?;
        Ok(tree)
    }

    fn read(cursor: &mut JsonCursor<'_>) -> Result<Self, JsonTreeError> {
        if cursor.enter_object()? {
            let mut fields = Vec::new();
            loop {
                let literal = cursor.rest().trim_start_matches([',', ' ', '\n', '\r', '\t']);
                let Some(key) = cursor.next_key()? else { break };
                fields.push((exact_text(key, literal)?, Self::read(cursor)?));
            }
            return match duplicate_key(&fields) {
                Some(key) => {
                    Err(JsonTreeError::DuplicateKey(key.chars().take(MAX_NAME_CHARS_SHOWN).collect()))
                }
                None => Ok(Self::Object(fields)),
            };
        }
        if cursor.enter_array()? {
            let mut items = Vec::new();
            while cursor.next_item()? {
                items.push(Self::read(cursor)?);
            }
            return Ok(Self::List(items));
        }
        let literal = cursor.rest();
        if let Some(text) = cursor.string()? {
            return Ok(Self::Text(exact_text(text, literal)?));
        }
        let value = cursor.next_value()?;
        Ok(match (value.boolean(), value.kind()) {
            (Some(flag), _) => Self::Bool(flag),
            (None, JsonKind::Null) => Self::Null,
            _ => Self::Number(value.get().to_owned()),
        })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.fields().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The fields of an object; none for anything else.
    pub(crate) fn fields(&self) -> &[(String, Self)] {
        match self {
            Self::Object(fields) => fields,
            _ => &[],
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its JSON type with an article, for messages.
    pub(crate) fn type_with_article(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// Writes the value as JSON, in source order and with the original digits.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(literal) => out.push_str(literal),
            Self::Text(text) => push_quoted(out, text),
            Self::List(items) => {
                write_between(out, ['[', ']'], items, Self::write);
            }
            Self::Object(fields) => write_between(out, ['{', '}'], fields, |(key, value), out| {
                push_quoted(out, key);
                out.push(':');
                value.write(out);
            }),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// Writes items between brackets, separated by commas.
pub(crate) fn write_between<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(close);
}

/// The text at the start of `literal`. The cursor replaces lone surrogates, which would hide a change; here they are an
/// error.
fn exact_text(decoded: Cow<'_, str>, literal: &str) -> Result<String, JsonTreeError> {
    // Borrowed text has no escapes.
    if matches!(decoded, Cow::Borrowed(_)) {
        return Ok(decoded.into_owned());
    }
    let text = serde_json::Deserializer::from_str(literal).into_iter().next();
    text.and_then(Result::ok).ok_or(JsonTreeError::Malformed)
}

impl From<JsonError> for JsonTreeError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::TooDeep(limit) => Self::TooDeep(limit),
            JsonError::Syntax(_) => Self::Malformed,
        }
    }
}

fn duplicate_key(fields: &[(String, JsonTree)]) -> Option<&str> {
    if fields.len() < MIN_SET_KEYS {
        let mut keys = fields.iter().enumerate();
        return keys
            .find(|(index, (key, _))| fields.iter().take(*index).any(|(earlier, _)| earlier == key))
            .map(|(_, (key, _))| key.as_str());
    }
    let mut seen = HashSet::with_capacity(fields.len());
    fields.iter().map(|(key, _)| key.as_str()).find(|key| !seen.insert(*key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn writing_restores_the_parsed_text() {
        let text =
            r#"{"z":[1.50,-0,1e400,123456789012345678901234567890],"a":{"b":null,"c":[]},"t":"中\"\\"}"#;
        let tree = JsonTree::parse(text, 8).unwrap();
        assert_eq!(tree.to_text(), text);
        let spaced = JsonTree::parse(" { \"a\" : [ 1 , true ] }\n", 8).unwrap();
        assert_eq!(spaced.to_text(), r#"{"a":[1,true]}"#);
    }

    #[test]
    fn ambiguous_and_malformed_text_is_rejected() {
        let parse = |text: &str| JsonTree::parse(text, 3);
        assert_eq!(parse(r#"{"a":1,"\u0061":2}"#), Err(JsonTreeError::DuplicateKey("a".to_owned())));
        let many: Vec<String> = (0..20).map(|index| format!("\"k{}\":0", index % 19)).collect();
        let many = format!("{{{}}}", many.join(","));
        assert_eq!(parse(&many), Err(JsonTreeError::DuplicateKey("k0".to_owned())));
        assert_eq!(parse("[[[[]]]]"), Err(JsonTreeError::TooDeep(3)));
        assert!(parse("[[[]]]").is_ok());
        for text in ["", "{", "[1,]", "{\"a\"}", r#""\ud800""#, "1 2", "nul", "01", "\"", "-", "{\"a\":1,}"] {
            assert_eq!(parse(text), Err(JsonTreeError::Malformed), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn parsing_agrees_with_serde_json(text in r#"[\[\]\{\}:,"\\ 0-9.eE+\-a\ntrulfs]{0,24}"#) {
            let ours = JsonTree::parse(&text, 64);
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match ours {
                Ok(tree) => prop_assert!(
                    theirs.is_err_and(|error| error.to_string().contains("out of range"))
                        || serde_json::from_str::<serde_json::Value>(&tree.to_text()).ok()
                            == serde_json::from_str(&text).ok()
                ),
                Err(JsonTreeError::DuplicateKey(_)) => prop_assert!(theirs.is_ok()),
                Err(_) => prop_assert!(theirs.is_err(), "{}", text),
            }
        }
    }
}
