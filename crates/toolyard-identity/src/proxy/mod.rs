//! Identities that a trusted proxy asserts in headers.
//!
//! ```text
//! address_range.rs  ranges of addresses in CIDR notation
//! identity.rs       the caller that a trusted proxy names
//! ```

pub(crate) mod address_range;
pub(crate) mod identity;
