//! JSON with comments or TOML as plain data that keeps order and duplicate keys.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, SeqAccess, Visitor},
};

use crate::config::redacted::safe_preview;

/// Large, because some clients keep a history in the same file.
pub const MAX_FILE_BYTES: usize = 16 << 20;

/// Why a file cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum DocumentError {
    /// The configuration file of a client is too large to be one.
    ///
    /// Remedy: pass the right file.
    #[error("the file is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The configuration file of a client is not JSON; comments and trailing commas are accepted.
    ///
    /// Remedy: correct the file at this place, or let the client write it again.
    #[error("the file is not JSON: {problem} (line {line}, column {column})")]
    NotJson {
        problem: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The configuration file of a client is not TOML.
    ///
    /// Remedy: correct the file at this line, or let the client write it again.
    #[error("the file is not TOML: {problem} (line {line})")]
    NotToml {
        problem: String,
        /// The line, from 1.
        line: usize,
    },
    /// The file has no table of servers where the client keeps it.
    ///
    /// Remedy: pass the file in which the client keeps its MCP servers, or name the
    /// client whose format it has: `toolyard import FILE --client NAME`.
    #[error("the file contains no servers: {expected} is missing")]
    NoServers { expected: &'static str },
}

#[derive(Clone, PartialEq)]
pub(in crate::config) enum Node {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Self>),
    /// In source order; may contain duplicate keys.
    Map(Vec<(String, Self)>),
}

impl Node {
    pub(in crate::config) fn from_json(text: &str) -> Result<Self, DocumentError> {
        parse_json(text)
    }

    pub(in crate::config) fn from_toml(text: &str) -> Result<Self, DocumentError> {
        let text = check_text(text)?;
        toml::from_str(text).map_err(|error| toml_error(text, error.message(), error.span()))
    }

    /// The value of a key; the last duplicate counts, as in all clients.
    pub(in crate::config) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
            .filter(|value| **value != Self::Null)
    }

    pub(in crate::config) fn get_any(&self, names: &[&str]) -> Option<&Self> {
        names.iter().find_map(|name| self.get(name))
    }

    pub(in crate::config) fn entries(&self) -> &[(String, Self)] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    pub(in crate::config) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub(in crate::config) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(in crate::config) fn is_true(&self) -> bool {
        *self == Self::Flag(true)
    }

    /// A text, number or boolean as text.
    pub(in crate::config) fn scalar_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Flag(flag) => Some(flag.to_string()),
            Self::Number(number) => Some(number.to_string()),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// The type, for messages without the value.
    pub(in crate::config) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Flag(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
        }
    }

    pub(in crate::config) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Flag(flag) => (*flag).into(),
            Self::Number(number) => exact_integer(*number).map_or_else(|| (*number).into(), Into::into),
            Self::Text(text) => text.as_str().into(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => serde_json::Value::Object(
                entries.iter().map(|(name, node)| (name.clone(), node.to_json())).collect(),
            ),
        }
    }
}

/// The number as an integer, if it is exact.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within the exact range")]
fn exact_integer(number: f64) -> Option<i64> {
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() < MAX_EXACT_INTEGER).then_some(number as i64)
}

/// The JSON that clients accept in their configuration: with comments and trailing commas.
pub(in crate::config) fn json_options() -> jsonc_parser::ParseOptions {
    jsonc_parser::ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Parses JSON with comments and trailing commas.
pub(in crate::config) fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, DocumentError> {
    jsonc_parser::parse_to_serde_value(check_text(text)?, &json_options()).map_err(|error| json_error(&error))
}

pub(in crate::config) fn json_error(error: &jsonc_parser::errors::ParseError) -> DocumentError {
    DocumentError::NotJson {
        problem: safe_preview(&error.kind().to_string()).to_lowercase(),
        line: error.line_display(),
        column: error.column_display(),
    }
}

/// The message for TOML that cannot be read, without the line itself: it may hold a secret.
pub(in crate::config) fn toml_error(
    text: &str,
    message: &str,
    span: Option<std::ops::Range<usize>>,
) -> DocumentError {
    let before_error = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before_error.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let first_line = message.lines().next().unwrap_or_default();
    DocumentError::NotToml { problem: safe_preview(first_line), line }
}

/// Checks the size and removes a byte order mark.
pub(in crate::config) fn check_text(text: &str) -> Result<&str, DocumentError> {
    if text.len() > MAX_FILE_BYTES {
        return Err(DocumentError::TooLarge);
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

#[expect(clippy::cast_precision_loss, reason = "configured numbers are small")]
impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_trailing_commas_and_duplicates_are_read() {
        let node = Node::from_json("\u{feff}{ // one\n \"a\": 1, \"a\": [true, null,], }").ok().unwrap();
        assert_eq!(node.entries().len(), 2);
        assert!(node.get("a").unwrap().items()[0].is_true());
        assert_eq!(node.to_json(), serde_json::json!({"a": [true, null]}));
    }

    #[test]
    fn errors_do_not_quote_the_text() {
        let json = |text: &str| Node::from_json(text).err().unwrap().to_string();
        let toml = |text: &str| Node::from_toml(text).err().unwrap().to_string();
        let deep = "[".repeat(100_000);
        let messages = [
            json("{\"a\": swordfish}"),
            json("{\"a\": \"swordfish"),
            json("{\"a\": 1} swordfish"),
            json(&deep),
            json(&"{\"a\":".repeat(100_000)),
            json(&" ".repeat(MAX_FILE_BYTES + 1)),
            toml("a = swordfish"),
            toml("a = 'x'\n[b\nc = 'swordfish'"),
            toml(&format!("a = {deep}")),
        ]
        .join("\n");
        assert!(!messages.contains("swordfish"), "{messages}");
        insta::assert_snapshot!(messages, @"
        the file is not JSON: unexpected token (line 1, column 7)
        the file is not JSON: unterminated string literal (line 1, column 7)
        the file is not JSON: text cannot contain more than one json value (line 1, column 10)
        the file is not JSON: maximum nesting depth exceeded (line 1, column 513)
        the file is not JSON: maximum nesting depth exceeded (line 1, column 2561)
        the file is larger than 16 MiB
        the file is not TOML: string values must be quoted, expected literal string (line 1)
        the file is not TOML: unclosed table, expected `]` (line 2)
        the file is not TOML: cannot recurse further; max recursion depth met (line 1)
        ");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn parsing_never_panics(text in "([\\[\\]{}\",:/*#=.\n]|[a-z0-9\\\\]|.){0,60}") {
            let _ = Node::from_json(&text);
            let _ = Node::from_toml(&text);
        }
    }
}
