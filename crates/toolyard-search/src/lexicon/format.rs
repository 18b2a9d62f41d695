//! The file format of a lexicon.
//!
//! ```text
//! magic 8 · version u32 · checksum 32 (BLAKE3 of all that follows)
//! lengths u32 × 6: origin, simplified characters, words, bytes of words, vocabulary, bytes of the vocabulary
//! origin            JSON: language, source, licence, attribution
//! characters        (traditional u32, simplified u32), sorted
//! word offsets      u32 × (words + 1)
//! words             length u8, word, then glosses: count, and for each its length and indices into the vocabulary
//! vocabulary        offsets u32 × (vocabulary + 1), then the English words, most frequent first
//! ```
//!
//! Numbers are little-endian; within words they are varints of seven bits per byte.

/// The first bytes of every lexicon.
pub(super) const MAGIC: &[u8; 8] = b"TOOLYLEX";
/// Version of the format described above.
pub(super) const VERSION: u32 = 1;
/// Size of the part before the checksummed one.
pub(super) const HEADER_BYTES: usize = 8 + 4 + 32;
/// Number of section lengths after the header.
pub(super) const LENGTH_COUNT: usize = 6;
/// Longer words of a dictionary are proverbs and left out.
pub(super) const MAX_WORD_CHARS: usize = 8;
/// Upper bound on the size of a lexicon.
pub(super) const MAX_LEXICON_BYTES: u64 = 64 << 20;

/// Appends a number as a varint.
pub(super) fn write_varint(mut number: u32, into: &mut Vec<u8>) {
    loop {
        let low = number.to_le_bytes()[0] & 0x7f;
        number >>= 7;
        if number == 0 {
            into.push(low);
            return;
        }
        into.push(low | 0x80);
    }
}
