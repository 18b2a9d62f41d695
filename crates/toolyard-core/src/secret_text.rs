//! Text that is never displayed.

use std::fmt;

/// A secret: a key, a password, a token, or a value that may contain one. `Debug` does not show it. It is serialized as its text,
/// for files that are encrypted or that only their owner can read.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text itself.
    pub fn into_exposed(self) -> String {
        self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = SecretText::new("tvly-123");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("tvly").count(), 0);
        assert_eq!((secret.expose(), secret.clone().into_exposed()), ("tvly-123", "tvly-123".to_owned()));
    }
}
