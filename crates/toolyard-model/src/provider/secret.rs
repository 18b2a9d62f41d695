//! Secrets that are sent to servers and never shown.

use std::fmt;

/// Shorter words are not redacted: they would match ordinary text.
const MIN_SECRET_BYTES: usize = 4;

/// A secret that is sent to a server and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretString(String);

impl SecretString {
    /// Wraps a secret.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The secret itself, for the code that sends it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The strings to redact from messages: `Bearer abc` hides `abc` as well.
    pub(crate) fn redactions(&self) -> Vec<String> {
        let words = self.0.split_whitespace().filter(|word| !word.eq_ignore_ascii_case("bearer"));
        let all = std::iter::once(self.0.as_str()).chain(words);
        all.filter(|secret| secret.len() >= MIN_SECRET_BYTES).map(str::to_owned).collect()
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
