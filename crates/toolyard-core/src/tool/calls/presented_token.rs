//! [`PresentedToken`]: the access token by which a caller authenticated. It stays in memory.

use std::{fmt, sync::Arc};

/// The access token that an OAuth caller presented. The gateway needs it to get tokens for servers on behalf of the caller; it
/// is never sent to a server. `Debug` does not show it, and it cannot be serialized.
#[derive(Clone)]
pub struct PresentedToken {
    text: Arc<str>,
    valid_until: i64,
    issued_at: Option<i64>,
}

impl PresentedToken {
    /// A token that was verified. `valid_until` is in seconds since 1970.
    pub fn new(text: &str, valid_until: i64) -> Self {
        Self { text: text.into(), valid_until, issued_at: None }
    }

    /// The same token with the time of its issue, in seconds since 1970, if the issuer says it.
    #[must_use]
    pub fn with_issued_at(self, issued_at: Option<i64>) -> Self {
        Self { issued_at, ..self }
    }

    /// The token itself.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Until when the token is accepted, in seconds since 1970.
    pub fn valid_until(&self) -> i64 {
        self.valid_until
    }

    /// When the token was issued, in seconds since 1970, if known.
    pub fn issued_at(&self) -> Option<i64> {
        self.issued_at
    }
}

impl fmt::Debug for PresentedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresentedToken(…)")
    }
}

/// The token of an identity, if it has one. All values are equal: a caller stays the same when its token is renewed.
#[derive(Clone, Default)]
pub(super) struct TokenInMemory(pub(super) Option<PresentedToken>);

impl PartialEq for TokenInMemory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for TokenInMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
