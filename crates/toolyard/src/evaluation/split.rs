//! Which half of a set a query belongs to: one is for tuning, the other is only ever reported.

use serde::{Deserialize, Serialize};
use toolyard_core::ContentHash;

/// A half of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// For tuning.
    Dev,
    /// For reporting.
    Test,
}

/// What of a set is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The half for reporting.
    Test,
    /// The half for tuning.
    Dev,
    /// Everything.
    All,
}

/// The half of a query, frozen: the first byte of the BLAKE3 hash of its id is even for the half for tuning.
pub fn half_of(id: &str) -> Half {
    if is_even(first_bytes(id).0) { Half::Dev } else { Half::Test }
}

impl Split {
    /// Whether a query of this half is measured.
    pub fn takes(self, half: Half) -> bool {
        match self {
            Self::Test => half == Half::Test,
            Self::Dev => half == Half::Dev,
            Self::All => true,
        }
    }

    /// What a query is when history is measured: past requests are never those that are measured. For tuning, the
    /// half for tuning is halved once more, by the second byte.
    pub fn role(self, id: &str, half: Half) -> Option<Role> {
        match (self, half) {
            (Self::Test, Half::Dev) => Some(Role::Past),
            (Self::Test, Half::Test) => Some(Role::Measured),
            (Self::Dev, Half::Dev) if is_even(first_bytes(id).1) => Some(Role::Past),
            (Self::Dev, Half::Dev) => Some(Role::Measured),
            (Self::Dev, Half::Test) | (Self::All, _) => None,
        }
    }
}

/// A query's part when history is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It was asked before, and its tools answered it.
    Past,
    /// It is asked now.
    Measured,
}

fn first_bytes(id: &str) -> (u8, u8) {
    let hash = ContentHash::of(id);
    let [first, second, ..] = hash.as_bytes();
    (*first, *second)
}

fn is_even(byte: u8) -> bool {
    byte.is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_are_frozen() {
        let halves: Vec<Half> = ["m0", "m1", "m2", "m3", "mm7", "live_multiple_0-0-0"].map(half_of).to_vec();
        assert_eq!(halves, FROZEN);
    }

    #[test]
    fn the_halves_are_about_as_large() {
        let dev = (0..10_000).filter(|number| half_of(&format!("q{number}")) == Half::Dev).count();
        assert!((4_800..5_200).contains(&dev), "{dev}");
    }

    #[test]
    fn what_is_past_is_never_measured() {
        for id in (0..1_000).map(|number| format!("q{number}")) {
            let half = half_of(&id);
            assert_eq!(
                Split::Test.role(&id, half),
                Some(if half == Half::Dev { Role::Past } else { Role::Measured })
            );
            assert_eq!(Split::Dev.role(&id, half).is_some(), half == Half::Dev);
            assert_eq!(Split::All.role(&id, half), None);
        }
    }

    // As another implementation of BLAKE3 has it.
    const FROZEN: [Half; 6] = [Half::Dev, Half::Test, Half::Dev, Half::Test, Half::Dev, Half::Dev];
}
