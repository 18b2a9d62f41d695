//! The file format of a lexicon.
//!
//! ```text
//! magic (8 bytes) · version u32 · checksum (32 bytes: BLAKE3 of all that follows)
//! lengths u32 × 6: bytes of the origin, simplifications, words, bytes of the words, vocabulary words, bytes of these
//! origin            JSON: language, name, source, licence, attribution
//! simplifications   (traditional u32, simplified u32), sorted
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
/// Size of magic, version and checksum.
pub(super) const HEADER_BYTES: usize = 8 + 4 + 32;
/// Number of section lengths after the header.
pub(super) const LENGTH_COUNT: usize = 6;
/// Longer words of a dictionary are proverbs and left out.
pub(super) const MAX_WORD_CHARS: usize = 8;
/// Upper bound on the size of a lexicon.
pub(super) const MAX_LEXICON_BYTES: u64 = 64 << 20;

pub(super) fn write_varint(mut value: u32, out: &mut Vec<u8>) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}
