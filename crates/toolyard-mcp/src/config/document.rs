//! Texts of other programs' configurations, read as plain data that keeps doubles and order.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

use super::hidden::shown;

/// No configuration of a client is larger; some keep a history in the same file.
pub const LARGEST_FILE: usize = 16 << 20;

/// Why a text cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It is too large.
    #[error("the file is larger than {} MiB", LARGEST_FILE >> 20)]
    TooLarge,
    /// It is not JSON.
    #[error("the file is not JSON: {problem} (line {line}, column {column})")]
    NotJson {
        /// What is wrong.
        problem: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// It is not TOML.
    #[error("the file is not TOML: {problem} (line {line})")]
    NotToml {
        /// What is wrong.
        problem: String,
        /// The line, from 1.
        line: usize,
    },
    /// It holds no servers.
    #[error("the file holds no servers: {expected} is missing")]
    NoServers {
        /// What should be there.
        expected: &'static str,
    },
}

/// JSON or TOML as plain data.
#[derive(Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Self>),
    /// In the order of the text; a name may stand there twice.
    Map(Vec<(String, Self)>),
}

impl Node {
    /// Reads JSON as people write it: with comments and commas at the end.
    pub(super) fn from_json(text: &str) -> Result<Self, DocumentError> {
        let text = checked(text)?;
        let options = jsonc_parser::ParseOptions {
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
        };
        jsonc_parser::parse_to_serde_value(text, &options).map_err(|error| DocumentError::NotJson {
            problem: shown(&error.kind().to_string()).to_lowercase(),
            line: error.line_display(),
            column: error.column_display(),
        })
    }

    /// Reads TOML.
    pub(super) fn from_toml(text: &str) -> Result<Self, DocumentError> {
        let text = checked(text)?;
        toml::from_str(text).map_err(|error| not_toml(text, error.message(), error.span()))
    }

    /// What stands under a name; the last one counts, as in every client.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
            .filter(|value| **value != Self::Null)
    }

    /// The first of several names that something stands under.
    pub(super) fn either(&self, names: &[&str]) -> Option<&Self> {
        names.iter().find_map(|name| self.get(name))
    }

    pub(super) fn entries(&self) -> &[(String, Self)] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn is_true(&self) -> bool {
        *self == Self::Flag(true)
    }

    /// A text, or a number or flag as it would be written.
    pub(super) fn plain(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Flag(flag) => Some(flag.to_string()),
            Self::Number(number) => Some(number.to_string()),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// What it is, for messages that must not tell the value.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Flag(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
        }
    }

    /// The same as JSON.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Flag(flag) => (*flag).into(),
            Self::Number(number) => whole(*number).map_or_else(|| (*number).into(), Into::into),
            Self::Text(text) => text.as_str().into(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => serde_json::Value::Object(
                entries.iter().map(|(name, node)| (name.clone(), node.to_json())).collect(),
            ),
        }
    }
}

/// A number without a fraction that is exact.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within the exact range")]
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
}

/// The message for TOML that cannot be read, without the line itself: it may hold a secret.
pub(super) fn not_toml(text: &str, message: &str, span: Option<std::ops::Range<usize>>) -> DocumentError {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let first = message.lines().next().unwrap_or_default();
    DocumentError::NotToml { problem: shown(first), line }
}

/// A text of bearable size, without the mark that Windows programs put before it.
pub(super) fn checked(text: &str) -> Result<&str, DocumentError> {
    if text.len() > LARGEST_FILE {
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
    fn comments_commas_and_doubles_are_read() {
        let node = Node::from_json("\u{feff}{ // one\n \"a\": 1, \"a\": [true, null,], }").ok().unwrap();
        assert_eq!(node.entries().len(), 2);
        assert!(node.get("a").unwrap().items()[0].is_true());
        assert_eq!(node.to_json(), serde_json::json!({"a": [true, null]}));
    }

    #[test]
    fn what_cannot_be_read_is_told_without_its_text() {
        let json = |text: &str| Node::from_json(text).err().unwrap().to_string();
        let toml = |text: &str| Node::from_toml(text).err().unwrap().to_string();
        let deep = "[".repeat(100_000);
        let messages = [
            json("{\"a\": swordfish}"),
            json("{\"a\": \"swordfish"),
            json("{\"a\": 1} swordfish"),
            json(&deep),
            json(&"{\"a\":".repeat(100_000)),
            json(&" ".repeat(LARGEST_FILE + 1)),
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
        fn no_text_breaks_it(text in "([\\[\\]{}\",:/*#=.\n]|[a-z0-9\\\\]|.){0,60}") {
            let _ = Node::from_json(&text);
            let _ = Node::from_toml(&text);
        }
    }
}
