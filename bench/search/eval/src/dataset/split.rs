//! The split of a test set into two halves: one for tuning, one for reporting only.

use serde::{Deserialize, Serialize};
use toolyard_core::ContentHash;

/// A half of a test set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// For tuning.
    Dev,
    /// For reporting.
    Test,
}

/// The part of a test set that is measured.
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

/// The half of a query: dev if the first byte of the BLAKE3 hash of its id is even. Must never change.
pub fn half_of(id: &str) -> Half {
    if is_even(first_bytes(id).0) { Half::Dev } else { Half::Test }
}

impl Split {
    /// Whether a query of this half is measured.
    pub fn includes(self, half: Half) -> bool {
        match self {
            Self::Test => half == Half::Test,
            Self::Dev => half == Half::Dev,
            Self::All => true,
        }
    }

    /// The role of a query when history is measured. Past requests are never measured themselves. The dev half is halved
    /// again by the second byte.
    pub fn role(self, id: &str, half: Half) -> Option<HistoryRole> {
        match (self, half) {
            (Self::Test, Half::Dev) => Some(HistoryRole::Past),
            (Self::Test, Half::Test) => Some(HistoryRole::Measured),
            (Self::Dev, Half::Dev) if is_even(first_bytes(id).1) => Some(HistoryRole::Past),
            (Self::Dev, Half::Dev) => Some(HistoryRole::Measured),
            (Self::Dev, Half::Test) | (Self::All, _) => None,
        }
    }
}

/// The role of a query when history is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryRole {
    /// A past request, served by its relevant tools.
    Past,
    /// A measured query.
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
    fn halves_never_change() {
        let halves: Vec<Half> = ["m0", "m1", "m2", "m3", "mm7", "live_multiple_0-0-0"].map(half_of).to_vec();
        assert_eq!(halves, FROZEN);
    }

    #[test]
    fn halves_are_balanced() {
        let dev = (0..10_000).filter(|number| half_of(&format!("q{number}")) == Half::Dev).count();
        assert!((4_800..5_200).contains(&dev), "{dev}");
    }

    #[test]
    fn past_requests_are_never_measured() {
        for id in (0..1_000).map(|number| format!("q{number}")) {
            let half = half_of(&id);
            assert_eq!(
                Split::Test.role(&id, half),
                Some(if half == Half::Dev { HistoryRole::Past } else { HistoryRole::Measured })
            );
            assert_eq!(Split::Dev.role(&id, half).is_some(), half == Half::Dev);
            assert_eq!(Split::All.role(&id, half), None);
        }
    }

    // From another implementation of BLAKE3.
    const FROZEN: [Half; 6] = [Half::Dev, Half::Test, Half::Dev, Half::Test, Half::Dev, Half::Dev];
}
