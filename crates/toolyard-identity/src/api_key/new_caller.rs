//! [`NewCaller`]: a caller that is about to be stored.

use toolyard_core::{RESERVED_CALLER_NAMES, StoredCaller, unix_millis};

use super::key::ApiKey;

/// Longer names do not fit into tables.
const MAX_NAME_CHARS: usize = 64;

/// The name of a caller has other characters, is too long, or is reserved.
///
/// Remedy: choose a name such as `ci` or `ada@example.com`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid name of a caller: use 1 to 64 letters, digits, `-`, `_`, `.` and `@`, starting with a letter or digit, except `operator` and `http`"
)]
pub struct InvalidCallerName;

/// A caller that is about to be stored.
#[derive(Debug, Clone)]
pub struct NewCaller {
    name: String,
    allowed_profiles: Option<Vec<String>>,
    allowed_agents: Option<Vec<String>>,
    expires_at: Option<i64>,
}

impl NewCaller {
    /// A caller that may use all profiles and agents, with a key that does not expire.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), allowed_profiles: None, allowed_agents: None, expires_at: None }
    }

    /// Checks a name: it appears in the audit log, in tables and on command lines.
    pub fn check_name(name: &str) -> Result<(), InvalidCallerName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@');
        let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        // In the audit log, these are others.
        let is_reserved = RESERVED_CALLER_NAMES.iter().any(|reserved| name.eq_ignore_ascii_case(reserved));
        if starts_well && name.len() <= MAX_NAME_CHARS && name.bytes().all(is_plain) && !is_reserved {
            Ok(())
        } else {
            Err(InvalidCallerName)
        }
    }

    /// Only these profiles, the main endpoint being the empty name.
    #[must_use]
    pub fn with_profiles(mut self, profiles: Option<Vec<String>>) -> Self {
        self.allowed_profiles = profiles;
        self
    }

    /// Only these agents.
    #[must_use]
    pub fn with_agents(mut self, agents: Option<Vec<String>>) -> Self {
        self.allowed_agents = agents;
        self
    }

    /// When the key expires, in milliseconds since 1970.
    #[must_use]
    pub fn expiring_at(mut self, expires_at: Option<i64>) -> Self {
        self.expires_at = expires_at;
        self
    }

    /// What is stored, with this key.
    pub fn with_key(self, key: &ApiKey) -> StoredCaller {
        StoredCaller {
            name: self.name,
            key: key.stored(self.expires_at),
            allowed_profiles: self.allowed_profiles,
            allowed_agents: self.allowed_agents,
            created_at: unix_millis(),
            revoked_at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["ci", "ada@example.com", "build-7", "a.b_c", &"x".repeat(64)] {
            assert_eq!(NewCaller::check_name(name), Ok(()), "{name}");
        }
        for name in ["operator", "Operator", "HTTP"] {
            assert_eq!(NewCaller::check_name(name), Err(InvalidCallerName), "{name}");
        }
        for name in ["", "-x", "@a", "a b", "a\n", "ä", "a/b", &"x".repeat(65)] {
            assert_eq!(NewCaller::check_name(name), Err(InvalidCallerName), "{name}");
        }
    }
}
