//! The form of a lexicon's file: what stands where.
//!
//! ```text
//! magic 8 · form u32 · checksum 32 (BLAKE3 of all that follows)
//! lengths u32 × 6: notice, simplified letters, words, bytes of words, vocabulary, bytes of the vocabulary
//! notice            JSON: language, source, licence, attribution
//! letters           (traditional u32, simplified u32), sorted
//! word offsets      u32 × (words + 1)
//! words             length u8, word, then glosses: count, and for each its length and numbers of the vocabulary
//! vocabulary        offsets u32 × (vocabulary + 1), then the English words, the commonest first
//! ```
//!
//! Numbers are little-endian; within words they are written seven bits a byte, so that common words take one or two.

/// The first bytes of every lexicon.
pub(super) const MAGIC: &[u8; 8] = b"TOOLYLEX";
/// The form described above.
pub(super) const FORM: u32 = 1;
/// Where the checksummed part begins.
pub(super) const HEADER: usize = 8 + 4 + 32;
/// How many lengths stand behind the header.
pub(super) const LENGTHS: usize = 6;
/// No word is longer than this, in letters; the dictionary's longest are proverbs.
pub(super) const LONGEST_WORD: usize = 8;

/// Writes a number, seven bits a byte.
pub(super) fn write_number(mut number: u32, into: &mut Vec<u8>) {
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

/// Whether a letter is one of those Chinese words are written with.
pub(super) fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' | '〇')
}
