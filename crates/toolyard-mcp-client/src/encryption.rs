//! Authenticated encryption of files (AES-256-GCM): OAuth tokens, stored secrets.

use std::fmt;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    rand,
};
use toolyard_core::ContentHash;

const FILE_HEADER: &[u8] = b"toolyard-encrypted-1\n";
const KEY_BYTES: usize = 32;
/// 64 bits: enough to tell the few keys of one person apart.
const KEY_ID_DIGITS: usize = 16;

/// A key of encrypted files. `Debug` does not show it.
#[derive(Clone)]
pub struct EncryptionKey([u8; KEY_BYTES]);

/// Why a file cannot be encrypted or decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionError {
    /// A key for encryption has the wrong form.
    ///
    /// Remedy: generate one with `openssl rand -hex 32`.
    #[error("a key has 64 hexadecimal digits: `openssl rand -hex 32` generates one")]
    InvalidKey,
    /// A file that should be encrypted by Toolyard is not.
    ///
    /// Remedy: restore the file from a backup, or remove it and sign in (or store the secrets) again.
    #[error("not an encrypted Toolyard file")]
    NotEncrypted,
    /// A file does not decrypt.
    ///
    /// Remedy: restore the file and its key from the same backup, or remove it and sign in (or store the secrets)
    /// again.
    #[error("the file is damaged, or was encrypted with another key or for another purpose")]
    Corrupt,
    /// The operating system gives no random numbers.
    ///
    /// Remedy: check `/dev/urandom` and the sandbox of the process.
    #[error("no random numbers available")]
    NoRandomness,
}

impl EncryptionKey {
    /// A new key.
    pub fn generate() -> Result<Self, EncryptionError> {
        let mut key = [0; KEY_BYTES];
        rand::fill(&mut key).map_err(|_| EncryptionError::NoRandomness)?;
        Ok(Self(key))
    }

    /// Parses a key of 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, EncryptionError> {
        // A hash has as many digits as a key.
        let key: ContentHash = text.trim().parse().map_err(|_| EncryptionError::InvalidKey)?;
        Ok(Self(*key.as_bytes()))
    }

    /// The key as 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// Identifies the key without revealing it: a hash of the key, for a file to say which key decrypts it.
    pub fn id(&self) -> String {
        let mut bytes = b"id of an encryption key\n".to_vec();
        bytes.extend(self.0);
        ContentHash::of(bytes).to_string().chars().take(KEY_ID_DIGITS).collect()
    }

    /// Encrypts bytes, bound to a context: they decrypt with the same key and context only.
    pub fn encrypt(&self, context: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, EncryptionError> {
        let nonce = self
            .cipher()?
            .seal_in_place_append_tag(Aad::from(context.as_bytes()), &mut bytes)
            .map_err(|_| EncryptionError::NoRandomness)?;
        Ok([FILE_HEADER, nonce.as_ref(), &bytes].concat())
    }

    /// Decrypts bytes that were encrypted with the same context.
    pub fn decrypt(&self, context: &str, encrypted: &[u8]) -> Result<Vec<u8>, EncryptionError> {
        let rest = encrypted.strip_prefix(FILE_HEADER).ok_or(EncryptionError::NotEncrypted)?;
        let (nonce, encrypted) = rest.split_at_checked(NONCE_LEN).ok_or(EncryptionError::Corrupt)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| EncryptionError::Corrupt)?;
        let mut bytes = encrypted.to_vec();
        let length = self
            .cipher()?
            .open_in_place(nonce, Aad::from(context.as_bytes()), &mut bytes)
            .map_err(|_| EncryptionError::Corrupt)?
            .len();
        bytes.truncate(length);
        Ok(bytes)
    }

    fn cipher(&self) -> Result<RandomizedNonceKey, EncryptionError> {
        RandomizedNonceKey::new(&AES_256_GCM, &self.0).map_err(|_| EncryptionError::InvalidKey)
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EncryptionKey(…)")
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_round_trip_through_hex_and_are_never_shown() {
        let key = EncryptionKey::generate().unwrap();
        assert_eq!(EncryptionKey::from_hex(&format!(" {}\n", key.to_hex())).unwrap().0, key.0);
        assert!(!format!("{key:?}").contains(&key.to_hex()));
        assert!(!key.to_hex().contains(&key.id()) && key.id().len() == KEY_ID_DIGITS);
        assert_ne!(key.id(), EncryptionKey::generate().unwrap().id());
        for text in
            ["", "00", &"0".repeat(63), &"0".repeat(65), &"0".repeat(66), &"g".repeat(64), &"é".repeat(64)]
        {
            assert_eq!(EncryptionKey::from_hex(text).unwrap_err(), EncryptionError::InvalidKey, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn only_unchanged_bytes_with_the_same_context_decrypt(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
            bit in 0_u8..8,
        ) {
            let key = EncryptionKey::generate().unwrap();
            let encrypted = key.encrypt("a", bytes.clone()).unwrap();
            prop_assert_eq!(key.decrypt("a", &encrypted).unwrap(), bytes);
            prop_assert!(key.decrypt("b", &encrypted).is_err());
            prop_assert!(EncryptionKey::generate().unwrap().decrypt("a", &encrypted).is_err());
            let at = at.index(encrypted.len());
            let mut changed = encrypted.clone();
            changed[at] ^= 1 << bit;
            prop_assert!(key.decrypt("a", &changed).is_err());
            prop_assert!(key.decrypt("a", &encrypted[..at]).is_err());
        }

        #[test]
        fn arbitrary_bytes_do_not_decrypt(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(EncryptionKey([7; KEY_BYTES]).decrypt("a", &bytes).is_err());
            prop_assert!(EncryptionKey([7; KEY_BYTES]).decrypt("a", &[FILE_HEADER, &bytes].concat()).is_err());
        }
    }
}
