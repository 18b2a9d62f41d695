//! JSON text that is known to be valid, its kind, and the error for text that is not.

use std::borrow::Cow;

use super::grammar::read_string;

/// JSON text that a [`crate::JsonCursor`] has scanned and found valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'t>(pub(super) &'t str);

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of JSON")]
pub enum JsonKind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

/// Why a [`crate::JsonCursor`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON from this byte on.
    ///
    /// Remedy: correct the JSON there: quotes, commas and brackets are the usual causes.
    #[error("invalid JSON at byte {0}")]
    Syntax(usize),
    /// Objects and arrays are nested deeper than Toolyard reads.
    ///
    /// Remedy: send flatter data.
    #[error("JSON nested more than {0} levels deep")]
    TooDeep(usize),
}

impl<'t> JsonText<'t> {
    /// The text itself.
    pub fn get(self) -> &'t str {
        self.0
    }

    /// The kind of the value.
    pub fn kind(self) -> JsonKind {
        JsonKind::of(self.0.as_bytes()).unwrap_or(JsonKind::Null)
    }

    /// The decoded string, if the value is one.
    pub fn string(self) -> Option<Cow<'t, str>> {
        read_string(self.0.strip_prefix('"')?).map(|(string, _)| string)
    }

    /// The value of `true` and `false`.
    pub fn boolean(self) -> Option<bool> {
        self.0.parse().ok()
    }

    /// The number, if the value is one and its text parses as `N`: `1.0` and `1e3` are no integers.
    pub fn number<N: std::str::FromStr>(self) -> Option<N> {
        (self.kind() == JsonKind::Number).then(|| self.0.parse().ok())?
    }
}

impl JsonKind {
    /// The kind of the value that starts here, judged by its first byte.
    pub(super) fn of(rest: &[u8]) -> Option<Self> {
        Some(match rest.first()? {
            b'{' => Self::Object,
            b'[' => Self::Array,
            b'"' => Self::String,
            b'-' | b'0'..=b'9' => Self::Number,
            b't' | b'f' => Self::Boolean,
            b'n' => Self::Null,
            _ => return None,
        })
    }
}
