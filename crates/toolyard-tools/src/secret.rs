//! API keys that cannot be printed by accident.

use std::fmt;

/// An API key or password. Its `Debug` form is `***`; it implements neither `Display` nor `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for sending it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(key: T) -> Self {
        Self::new(key)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::from("tvly-123");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("tvly").count(), 0);
        assert_eq!(secret.reveal(), "tvly-123");
    }
}
