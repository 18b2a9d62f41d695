//! Hashes of adjacent terms. Definitions and queries with the same bigram share a phrase.

/// FNV-1a hash of one term of a bigram.
pub(crate) fn term_hash(term: &str) -> u32 {
    term.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Hash of two adjacent terms, from their [`term_hash`]es.
pub(crate) fn bigram_hash(first: u32, second: u32) -> u32 {
    first.rotate_left(5).wrapping_mul(0x9e37_79b1) ^ second
}
