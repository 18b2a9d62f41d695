//! A lexicon file, searched in its serialized form.

use std::{ops::Range, path::Path, sync::Arc};

use toolyard_core::ContentHash;

use super::{
    byte_reader::{ByteReader, u32_at},
    error::LexiconError,
    format::{HEADER_BYTES, LENGTH_COUNT, MAGIC, MAX_LEXICON_BYTES, MAX_WORD_CHARS, VERSION},
    origin::Origin,
};

/// A lexicon built from a dictionary. Clones share the data.
#[derive(Clone)]
pub struct StoredLexicon(Arc<LexiconData>);

struct LexiconData {
    bytes: Vec<u8>,
    origin: Origin,
    // The sections, see the module `format`.
    simplifications: Range<usize>,
    word_offsets: Range<usize>,
    words: Range<usize>,
    vocabulary_offsets: Range<usize>,
    vocabulary: Range<usize>,
}

/// Upper bound on the glosses of a word and the words of a gloss, to bound the work on a malicious file.
const MAX_GLOSS_ITEMS: u32 = 16;

impl StoredLexicon {
    /// Reads a lexicon file.
    ///
    /// # Errors
    /// If the file cannot be read, is not a lexicon, has an unsupported version, or is damaged.
    pub fn open(path: &Path) -> Result<Self, LexiconError> {
        let unreadable = |error| LexiconError::Unreadable { path: path.to_owned(), error };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > MAX_LEXICON_BYTES {
            return Err(LexiconError::TooLarge(length));
        }
        Self::from_bytes(std::fs::read(path).map_err(unreadable)?)
    }

    /// Reads a lexicon from the content of its file.
    ///
    /// # Errors
    /// If it is not a lexicon, has an unsupported version, or is damaged.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, LexiconError> {
        let mut reader = ByteReader(&bytes);
        if reader.read_bytes(MAGIC.len()) != Some(MAGIC) {
            return Err(LexiconError::NotALexicon);
        }
        match reader.read_u32() {
            Some(VERSION) => {}
            Some(found) => return Err(LexiconError::UnsupportedVersion { found, supported: VERSION }),
            None => return Err(LexiconError::Damaged("truncated header")),
        }
        let checksum = reader.read_bytes(32);
        if checksum != Some(ContentHash::of(reader.0).as_bytes().as_slice()) {
            return Err(LexiconError::Damaged("wrong checksum"));
        }
        let sections =
            section_ranges(&mut reader, &bytes).ok_or(LexiconError::Damaged("wrong section lengths"))?;
        let origin =
            bytes.get(sections.0.clone()).and_then(|origin_json| serde_json::from_slice(origin_json).ok());
        let origin = origin.ok_or(LexiconError::Damaged("unreadable origin"))?;
        let (_, simplifications, word_offsets, words, vocabulary_offsets, vocabulary) = sections;
        Ok(Self(Arc::new(LexiconData {
            bytes,
            origin,
            simplifications,
            word_offsets,
            words,
            vocabulary_offsets,
            vocabulary,
        })))
    }

    /// Origin and licence.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        (self.0.word_offsets.len() / 4).saturating_sub(1)
    }

    /// Whether the lexicon has no words.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.0.bytes.len()
    }

    fn section(&self, range: &Range<usize>) -> &[u8] {
        self.0.bytes.get(range.clone()).unwrap_or_default()
    }

    /// The simplified form of a character, or the character itself.
    pub(super) fn simplified(&self, letter: char) -> char {
        let pairs = self.section(&self.0.simplifications);
        let traditional = |at: usize| u32_at(pairs, at * 2);
        let at = partition_point(0..pairs.len() / 8, |at| {
            traditional(at).is_some_and(|known| known < u32::from(letter))
        });
        match traditional(at) {
            Some(known) if known == u32::from(letter) => {
                u32_at(pairs, at * 2 + 1).and_then(char::from_u32).unwrap_or(letter)
            }
            _ => letter,
        }
    }

    /// Calls `each` with the length in characters and the id of every word that is a prefix of `characters`.
    pub(super) fn for_each_prefix_word(&self, characters: &[char], mut each: impl FnMut(usize, u32)) {
        let mut prefix = String::with_capacity(MAX_WORD_CHARS * 4);
        let mut range = 0..self.len();
        for (index, letter) in characters.iter().take(MAX_WORD_CHARS).enumerate() {
            prefix.push(*letter);
            let prefix_bytes = prefix.as_bytes();
            let start =
                partition_point(range.clone(), |at| self.word(at).is_some_and(|word| word < prefix_bytes));
            let end = partition_point(start..range.end, |at| {
                self.word(at).is_some_and(|word| word.starts_with(prefix_bytes))
            });
            if start >= end {
                return;
            }
            if self.word(start) == Some(prefix_bytes)
                && let Ok(id) = u32::try_from(start)
            {
                each(index + 1, id);
            }
            range = start..end;
        }
    }

    /// The word of a record, and a reader of its glosses.
    fn record(&self, at: usize) -> Option<(&[u8], ByteReader<'_>)> {
        let offsets = self.section(&self.0.word_offsets);
        let start = usize::try_from(u32_at(offsets, at)?).ok()?;
        let end = usize::try_from(u32_at(offsets, at + 1)?).ok()?;
        let mut reader = ByteReader(self.section(&self.0.words).get(start..end)?);
        let length = reader.read_u8()?;
        Some((reader.read_bytes(length.into())?, reader))
    }

    fn word(&self, at: usize) -> Option<&[u8]> {
        self.record(at).map(|(word, _)| word)
    }

    /// The glosses of a word, as far as they are readable.
    pub(super) fn glosses(&self, word_id: u32) -> Vec<Vec<String>> {
        let mut glosses = Vec::new();
        let record = usize::try_from(word_id).ok().and_then(|at| self.record(at));
        let Some((_, mut reader)) = record else { return glosses };
        for _ in 0..reader.read_varint().unwrap_or(0).min(MAX_GLOSS_ITEMS) {
            let count = reader.read_varint().unwrap_or(0).min(MAX_GLOSS_ITEMS);
            let words: Option<Vec<String>> =
                (0..count).map(|_| self.vocabulary_word(reader.read_varint()?)).collect();
            match words {
                Some(words) if !words.is_empty() => glosses.push(words),
                _ => break,
            }
        }
        glosses
    }

    fn vocabulary_word(&self, id: u32) -> Option<String> {
        let offsets = self.section(&self.0.vocabulary_offsets);
        let at = usize::try_from(id).ok()?;
        let start = usize::try_from(u32_at(offsets, at)?).ok()?;
        let end = usize::try_from(u32_at(offsets, at + 1)?).ok()?;
        let word = self.section(&self.0.vocabulary).get(start..end)?;
        std::str::from_utf8(word).ok().map(str::to_owned)
    }
}

impl std::fmt::Debug for StoredLexicon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredLexicon").field("origin", &self.0.origin).field("words", &self.len()).finish()
    }
}

/// The first position of a range at which a condition no longer holds.
fn partition_point(range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle) { start = middle + 1 } else { end = middle }
    }
    start
}

type SectionRanges = (Range<usize>, Range<usize>, Range<usize>, Range<usize>, Range<usize>, Range<usize>);

/// The sections of a file; `None` if their lengths do not add up to its size.
fn section_ranges(reader: &mut ByteReader<'_>, bytes: &[u8]) -> Option<SectionRanges> {
    let mut lengths = [0_usize; LENGTH_COUNT];
    for length in &mut lengths {
        *length = usize::try_from(reader.read_u32()?).ok()?;
    }
    let [origin_bytes, simplifications, words, word_bytes, vocabulary_words, vocabulary_bytes] = lengths;
    let mut at = HEADER_BYTES + LENGTH_COUNT * 4;
    let mut section = |length: usize| {
        let start = at;
        at = start.checked_add(length)?;
        Some(start..at)
    };
    let array_bytes = |count: usize, item_bytes: usize| count.checked_mul(item_bytes);
    let sections = (
        section(origin_bytes)?,
        section(array_bytes(simplifications, 8)?)?,
        section(array_bytes(words.checked_add(1)?, 4)?)?,
        section(word_bytes)?,
        section(array_bytes(vocabulary_words.checked_add(1)?, 4)?)?,
        section(vocabulary_bytes)?,
    );
    (sections.5.end == bytes.len()).then_some(sections)
}

#[cfg(test)]
#[path = "stored_lexicon_tests.rs"]
mod tests;
