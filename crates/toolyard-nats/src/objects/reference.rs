//! [`ObjectReference`]: which object a message is, and how to recognize that it is complete.

use std::fmt;

use aws_lc_rs::{error::Unspecified, rand};

/// Bytes of a name: too many to guess.
const NAME_LENGTH: usize = 16;
/// Bytes of a SHA-256 digest.
pub(super) const DIGEST_LENGTH: usize = 32;

/// The random name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectName([u8; NAME_LENGTH]);

/// An object that is a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectReference {
    pub(super) name: ObjectName,
    /// In bytes.
    pub(super) length: u64,
    /// SHA-256.
    pub(super) digest: [u8; DIGEST_LENGTH],
}

impl ObjectName {
    pub(super) fn random() -> Result<Self, Unspecified> {
        let mut name = [0; NAME_LENGTH];
        rand::fill(&mut name)?;
        Ok(Self(name))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl ObjectReference {
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.name.0[..], &self.length.to_be_bytes(), &self.digest].concat()
    }

    /// None if this is not a reference.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (name, rest) = bytes.split_first_chunk::<NAME_LENGTH>()?;
        let (length, rest) = rest.split_first_chunk()?;
        let digest = rest.try_into().ok()?;
        Some(Self { name: ObjectName(*name), length: u64::from_be_bytes(*length), digest })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_reference_is_read_back(name: [u8; NAME_LENGTH], length: u64, digest: [u8; DIGEST_LENGTH]) {
            let reference = ObjectReference { name: ObjectName(name), length, digest };
            let bytes = reference.encode();
            prop_assert_eq!(ObjectReference::decode(&bytes), Some(reference));
            prop_assert_eq!(ObjectReference::decode(&bytes[1..]), None);
            prop_assert_eq!(ObjectReference::decode(&[&bytes[..], b"x"].concat()), None);
        }
    }
}
