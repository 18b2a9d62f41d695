//! Names content by its BLAKE3 hash, so that changed content has another name.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Parts of something are hashed in pieces of up to about this many bytes.
const GATHERED: usize = 1_024;

/// A BLAKE3 hash, written as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of these bytes.
    pub fn of(content: impl AsRef<[u8]>) -> Self {
        Self(*blake3::hash(content.as_ref()).as_bytes())
    }

    /// The hash of several parts; where one ends and the next begins is part of it.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        // Small parts are put together first: each update costs about as much as hashing dozens of bytes.
        let mut gathered = Vec::with_capacity(GATHERED);
        for part in parts {
            gathered.extend_from_slice(&(part.len() as u64).to_le_bytes());
            if gathered.len() + part.len() <= GATHERED {
                gathered.extend_from_slice(part);
            } else {
                hasher.update(&gathered).update(part);
                gathered.clear();
            }
        }
        Self(*hasher.update(&gathered).finalize().as_bytes())
    }

    /// The hash itself.
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hash = blake3::Hash::from_hex(text).map_err(|error| format!("not a hash: {error}"))?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl TryFrom<String> for ContentHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
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
    fn a_hash_is_written_and_read_back() {
        let hash = ContentHash::of("content");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert!("xyz".parse::<ContentHash>().is_err());
    }

    #[test]
    fn where_parts_end_is_part_of_the_hash() {
        let of = |parts: [&str; 2]| ContentHash::of_parts(parts.map(str::as_bytes));
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }

    #[test]
    fn parts_of_any_size_are_hashed_one_after_the_other() {
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
