//! Sealing: bytes that only whoever has the key can read, and nobody can change unseen.

use std::fmt;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    rand,
};

const MARK: &[u8] = b"toolyard-sealed-1\n";
const KEY_BYTES: usize = 32;

/// The key that tokens are sealed with.
#[derive(Clone)]
pub struct SealKey([u8; KEY_BYTES]);

/// Why something cannot be sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The key is not 64 hexadecimal digits.
    #[error("a key is 64 hexadecimal digits: `openssl rand -hex 32` makes one")]
    NotAKey,
    /// The bytes were never sealed.
    #[error("it is no sealed file of Toolyard")]
    NotSealed,
    /// The bytes were sealed with another key or for another purpose, or were changed since.
    #[error("it is damaged, or was sealed with another key or for another server")]
    Damaged,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl SealKey {
    /// A new key.
    pub fn generate() -> Result<Self, SealError> {
        let mut key = [0; KEY_BYTES];
        rand::fill(&mut key).map_err(|_| SealError::NoRandomness)?;
        Ok(Self(key))
    }

    /// A key from 64 hexadecimal digits, such as a variable holds.
    pub fn from_hex(text: &str) -> Result<Self, SealError> {
        let digits: Option<Vec<u8>> = text
            .trim()
            .chars()
            .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect();
        let digits = digits.ok_or(SealError::NotAKey)?;
        let (pairs, rest) = digits.as_chunks::<2>();
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        match <[u8; KEY_BYTES]>::try_from(bytes) {
            Ok(key) if rest.is_empty() => Ok(Self(key)),
            _ => Err(SealError::NotAKey),
        }
    }

    /// The digits, for the file that keeps the key.
    pub(super) fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// Seals bytes for one purpose: they open for no other.
    pub(super) fn seal(&self, purpose: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, SealError> {
        let nonce = self
            .cipher()?
            .seal_in_place_append_tag(Aad::from(purpose.as_bytes()), &mut bytes)
            .map_err(|_| SealError::NoRandomness)?;
        Ok([MARK, nonce.as_ref(), &bytes].concat())
    }

    /// Opens what was sealed for the same purpose.
    pub(super) fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let rest = sealed.strip_prefix(MARK).ok_or(SealError::NotSealed)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN).ok_or(SealError::Damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Damaged)?;
        let mut bytes = sealed.to_vec();
        let length = self
            .cipher()?
            .open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut bytes)
            .map_err(|_| SealError::Damaged)?
            .len();
        bytes.truncate(length);
        Ok(bytes)
    }

    fn cipher(&self) -> Result<RandomizedNonceKey, SealError> {
        RandomizedNonceKey::new(&AES_256_GCM, &self.0).map_err(|_| SealError::NotAKey)
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SealKey(***)")
    }
}

/// Bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_digits_and_never_shown() {
        let key = SealKey::generate().unwrap();
        assert_eq!(SealKey::from_hex(&format!(" {}\n", key.to_hex())).unwrap().0, key.0);
        assert!(!format!("{key:?}").contains(&key.to_hex()));
        for text in
            ["", "00", &"0".repeat(63), &"0".repeat(65), &"0".repeat(66), &"g".repeat(64), &"é".repeat(64)]
        {
            assert_eq!(SealKey::from_hex(text).unwrap_err(), SealError::NotAKey, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn opens_only_unchanged_for_the_same_purpose(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
            bit in 0_u8..8,
        ) {
            let key = SealKey::generate().unwrap();
            let sealed = key.seal("a", bytes.clone()).unwrap();
            prop_assert_eq!(key.open("a", &sealed).unwrap(), bytes);
            prop_assert!(key.open("b", &sealed).is_err());
            prop_assert!(SealKey::generate().unwrap().open("a", &sealed).is_err());
            let at = at.index(sealed.len());
            let mut changed = sealed.clone();
            changed[at] ^= 1 << bit;
            prop_assert!(key.open("a", &changed).is_err());
            prop_assert!(key.open("a", &sealed[..at]).is_err());
        }

        #[test]
        fn opens_no_foreign_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(SealKey([7; KEY_BYTES]).open("a", &bytes).is_err());
            prop_assert!(SealKey([7; KEY_BYTES]).open("a", &[MARK, &bytes].concat()).is_err());
        }
    }
}
