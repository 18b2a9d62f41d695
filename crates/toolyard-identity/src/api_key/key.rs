//! [`ApiKey`]: `ty_<id>_<secret>`, of which only a hash is stored.

use std::fmt;

use aws_lc_rs::{constant_time::verify_slices_are_equal, digest};
use toolyard_core::StoredKey;

/// What every API key starts with, so that people and secret scanners recognize it.
pub(crate) const KEY_PREFIX: &str = "ty_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// The operating system gives no random numbers.
///
/// Remedy: check `/dev/urandom` and the sandbox of the process, then repeat the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to generate an API key: the operating system provides no random numbers")]
pub struct RandomnessError;

/// A new API key; shown once and never stored.
pub struct ApiKey {
    text: String,
    id: String,
}

impl ApiKey {
    /// A random key: 64 bits that identify it, and a secret of 256 bits.
    pub fn generate() -> Result<Self, RandomnessError> {
        let mut id = [0; ID_BYTES];
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut id).map_err(|_| RandomnessError)?;
        getrandom::fill(&mut secret).map_err(|_| RandomnessError)?;
        let id = hex::encode(id);
        Ok(Self { text: format!("{KEY_PREFIX}{id}_{}", hex::encode(secret)), id })
    }

    /// The key as the caller presents it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is stored of the key.
    pub fn stored(&self, expires_at: Option<i64>) -> StoredKey {
        let secret = PresentedKey::parse(&self.text).map(|key| key.secret).unwrap_or_default();
        StoredKey { id: self.id.clone(), secret_hash: sha256(secret.as_bytes()), expires_at }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The parts of a key that a caller presents.
#[derive(Clone, Copy)]
pub(crate) struct PresentedKey<'a> {
    pub(crate) id: &'a str,
    secret: &'a str,
}

impl<'a> PresentedKey<'a> {
    /// Reads a key; `None` if it has another form.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(KEY_PREFIX)?.split_once('_')?;
        let is_hex = |text: &str, bytes: usize| {
            text.len() == 2 * bytes && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        (is_hex(id, ID_BYTES) && is_hex(secret, SECRET_BYTES)).then_some(Self { id, secret })
    }

    /// Whether this is the stored key; compared in constant time.
    pub(crate) fn matches(self, stored: &StoredKey) -> bool {
        self.id == stored.id
            && verify_slices_are_equal(&sha256(self.secret.as_bytes()), &stored.secret_hash).is_ok()
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, bytes);
    hash.as_ref().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_generated_key_matches_what_is_stored_of_it_and_no_other() {
        let (key, other) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        let stored = key.stored(None);
        assert!(PresentedKey::parse(key.text()).unwrap().matches(&stored));
        assert!(!PresentedKey::parse(other.text()).unwrap().matches(&stored));
        let with_other_secret = format!("ty_{}_{}", stored.id, other.text().get(20..).unwrap());
        assert!(!PresentedKey::parse(&with_other_secret).unwrap().matches(&stored));
        let secret = key.text().get(20..).unwrap();
        assert_eq!(secret.len(), 64, "256 bits");
        assert!(!format!("{key:?} {stored:?}").contains(secret), "the secret is never printed");
        assert!(!hex::encode(stored.secret_hash).contains(secret));
    }

    #[test]
    fn other_forms_are_no_keys() {
        let key = ApiKey::generate().unwrap();
        for wrong in [
            "",
            "ty_",
            "ty__",
            key.text().get(1..).unwrap(),
            key.text().get(..83).unwrap(),
            &format!("{}0", key.text()),
            &key.text().to_uppercase(),
            &key.text().replace('_', "-"),
        ] {
            assert!(PresentedKey::parse(wrong).is_none(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_and_no_guess_matches(text in "(ty_)?[0-9a-fé_]{0,90}") {
            let stored = ApiKey::generate().unwrap().stored(None);
            prop_assert!(!PresentedKey::parse(&text).is_some_and(|key| key.matches(&stored)));
        }
    }
}
