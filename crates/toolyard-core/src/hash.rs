//! Content hashes (BLAKE3).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Small parts are gathered into blocks of up to this size before they are hashed.
const MAX_BLOCK_BYTES: usize = 1_024;

/// A BLAKE3 hash, written as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash([u8; 32]);

/// A text that should be the hash of a tool definition is not one.
///
/// Remedy: copy the hash from the output of the command that printed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid content hash: {0}")]
pub struct InvalidHash(String);

impl ContentHash {
    /// The hash of these bytes.
    pub fn of(content: impl AsRef<[u8]>) -> Self {
        Self(*blake3::hash(content.as_ref()).as_bytes())
    }

    /// The hash of several parts, including their boundaries.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        // An update costs about as much as hashing dozens of bytes, so small parts are gathered first.
        let mut block = Vec::with_capacity(MAX_BLOCK_BYTES);
        for part in parts {
            block.extend_from_slice(&(part.len() as u64).to_le_bytes());
            if block.len() + part.len() <= MAX_BLOCK_BYTES {
                block.extend_from_slice(part);
            } else {
                hasher.update(&block).update(part);
                block.clear();
            }
        }
        Self(*hasher.update(&block).finalize().as_bytes())
    }

    /// The bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for ContentHash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl FromStr for ContentHash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        let hash = blake3::Hash::from_hex(text).map_err(|error| InvalidHash(error.to_string()))?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl TryFrom<String> for ContentHash {
    type Error = InvalidHash;

    fn try_from(text: String) -> Result<Self, InvalidHash> {
        text.parse()
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_survives_its_text_form() {
        let hash = ContentHash::of("content");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert!("xyz".parse::<ContentHash>().is_err());
    }

    #[test]
    fn boundaries_of_parts_change_the_hash() {
        let hash_parts = |parts: [&str; 2]| ContentHash::of_parts(parts.map(str::as_bytes));
        assert_ne!(hash_parts(["ab", "c"]), hash_parts(["a", "bc"]));
    }

    #[test]
    fn parts_of_any_size_are_hashed_in_order() {
        for sizes in [[0, 1, 2], [1_000, 30, 1], [5_000, 1, 5_000], [500, 500, 500], [1_016, 1_008, 1_009]] {
            let parts = sizes.map(|size| vec![7_u8; size]);
            let whole: Vec<u8> = parts
                .iter()
                .flat_map(|part| (part.len() as u64).to_le_bytes().into_iter().chain(part.iter().copied()))
                .collect();
            assert_eq!(ContentHash::of_parts(parts.iter().map(Vec::as_slice)), ContentHash::of(whole));
        }
    }
}
