//! [`SessionKeys`]: encrypts and authenticates state that clients store for the server.

use std::{fmt, sync::Arc};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// Longer sealed texts are neither created nor opened.
const MAX_SEALED_BYTES: usize = 64 << 10;

/// Keys for state that clients store. The current key seals; the current and the former key open, so that keys can be
/// rotated while clients hold state sealed with the former one.
#[derive(Clone)]
pub struct SessionKeys(Arc<Keys>);

struct Keys {
    current: LessSafeKey,
    former: Option<LessSafeKey>,
}

/// Why no keys could be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionKeyError {
    /// A key for session ids has the wrong length.
    ///
    /// Remedy: pass 32 random bytes.
    #[error("invalid session key: expected 32 bytes")]
    InvalidKey,
    /// The operating system gives no random numbers.
    ///
    /// Remedy: check `/dev/urandom` and the sandbox of the process.
    #[error("the operating system provides no random numbers")]
    NoRandomness,
}

impl SessionKeys {
    /// The current key, and the former one while clients may hold state sealed with it.
    pub fn new(current: [u8; 32], former: Option<[u8; 32]>) -> Result<Self, SessionKeyError> {
        let former = former.as_ref().map(aead_key).transpose()?;
        Ok(Self(Arc::new(Keys { current: aead_key(&current)?, former })))
    }

    /// A random key that is lost with the process.
    pub fn random() -> Result<Self, SessionKeyError> {
        let mut current = [0; 32];
        fill_random(&mut current).ok_or(SessionKeyError::NoRandomness)?;
        Self::new(current, None)
    }

    /// Seals bytes as URL-safe text. They open only with the same `purpose`.
    pub(crate) fn seal(&self, purpose: &[u8], mut bytes: Vec<u8>) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        fill_random(&mut nonce)?;
        let current = &self.0.current;
        current
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(purpose), &mut bytes)
            .ok()?;
        let sealed = URL_SAFE_NO_PAD.encode([nonce.as_slice(), &bytes].concat());
        // Never issue what `open` would reject.
        (sealed.len() <= MAX_SEALED_BYTES).then_some(sealed)
    }

    /// Opens text that was sealed for the same purpose with either key.
    pub(crate) fn open(&self, purpose: &[u8], sealed: &str) -> Option<Vec<u8>> {
        if sealed.len() > MAX_SEALED_BYTES {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let keys = [Some(&self.0.current), self.0.former.as_ref()];
        keys.into_iter().flatten().find_map(|key| {
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut bytes = sealed.to_vec();
            let length = key.open_in_place(nonce, Aad::from(purpose), &mut bytes).ok()?.len();
            bytes.truncate(length);
            Some(bytes)
        })
    }
}

/// Fills a buffer with random bytes of the operating system. The generator of aws-lc-rs would first measure clock jitter,
/// which takes longer than the rest of the start-up.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Option<()> {
    getrandom::fill(bytes).ok()
}

fn aead_key(bytes: &[u8; 32]) -> Result<LessSafeKey, SessionKeyError> {
    UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new).map_err(|_| SessionKeyError::InvalidKey)
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionKeys(***)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_former_key_opens_sealed_text_and_no_other_does() {
        let old = SessionKeys::new([1; 32], None).unwrap();
        let both = SessionKeys::new([2; 32], Some([1; 32])).unwrap();
        let new = SessionKeys::new([2; 32], None).unwrap();
        let sealed = old.seal(b"a", b"something".to_vec()).unwrap();
        assert_eq!(both.open(b"a", &sealed).unwrap(), b"something");
        assert_eq!(new.open(b"a", &sealed), None);
        let sealed = both.seal(b"a", b"something".to_vec()).unwrap();
        assert_eq!(new.open(b"a", &sealed).unwrap(), b"something");
        assert_eq!(old.open(b"a", &sealed), None);
        assert!(!format!("{both:?}").contains('2'));
    }

    proptest! {
        #[test]
        fn only_unchanged_text_opens_for_the_same_purpose(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
        ) {
            let keys = SessionKeys::random().unwrap();
            let sealed = keys.seal(b"a", bytes.clone()).unwrap();
            prop_assert_eq!(keys.open(b"a", &sealed).unwrap(), bytes);
            prop_assert!(keys.open(b"b", &sealed).is_none());
            let mut changed = sealed.clone().into_bytes();
            let at = at.index(changed.len());
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            prop_assert!(keys.open(b"a", &String::from_utf8(changed).unwrap()).is_none());
        }

        #[test]
        fn no_other_text_opens(text in ".{0,200}") {
            prop_assert!(SessionKeys::random().unwrap().open(b"a", &text).is_none());
        }
    }
}
