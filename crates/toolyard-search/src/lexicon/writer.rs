//! Serializes a lexicon into its file format.

use std::collections::{BTreeMap, HashMap};

use toolyard_core::ContentHash;

use super::{
    error::LexiconError,
    format::{MAGIC, MAX_LEXICON_BYTES, MAX_WORD_CHARS, VERSION, write_varint},
    origin::Origin,
};

/// Words in simplified spelling with their glosses, and the simplified forms of traditional characters.
#[derive(Debug, Default)]
pub(super) struct LexiconContent {
    pub(super) words: BTreeMap<String, Vec<Vec<String>>>,
    pub(super) simplifications: BTreeMap<char, char>,
}

impl LexiconContent {
    /// The simplified spelling of a word.
    pub(super) fn simplified(&self, word: &str) -> String {
        word.chars().map(|letter| self.simplifications.get(&letter).copied().unwrap_or(letter)).collect()
    }
}

pub(super) fn serialize(content: &LexiconContent, origin: &Origin) -> Result<Vec<u8>, LexiconError> {
    let vocabulary = vocabulary(content);
    let vocabulary_ids: HashMap<&str, u32> = vocabulary.iter().copied().zip(0..).collect();
    let (mut offsets, mut records) = (U32Array::default(), Vec::new());
    let short_words = content.words.iter().filter(|(word, _)| word.chars().count() <= MAX_WORD_CHARS);
    for (word, glosses) in short_words {
        offsets.push(records.len())?;
        // A word of eight characters takes at most 32 bytes, so the length fits.
        records.push(u8::try_from(word.len()).unwrap_or(u8::MAX));
        records.extend_from_slice(word.as_bytes());
        write_varint(checked_length(glosses.len())?, &mut records);
        for gloss in glosses {
            write_varint(checked_length(gloss.len())?, &mut records);
            for gloss_word in gloss {
                write_varint(
                    vocabulary_ids.get(gloss_word.as_str()).copied().unwrap_or_default(),
                    &mut records,
                );
            }
        }
    }
    let word_count = offsets.0.len() / 4;
    offsets.push(records.len())?;
    let (mut vocabulary_offsets, mut vocabulary_bytes) = (U32Array::default(), Vec::new());
    for word in &vocabulary {
        vocabulary_offsets.push(vocabulary_bytes.len())?;
        vocabulary_bytes.extend_from_slice(word.as_bytes());
    }
    vocabulary_offsets.push(vocabulary_bytes.len())?;
    let origin_json = serde_json::to_vec(origin).unwrap_or_default();
    let mut simplifications = Vec::with_capacity(content.simplifications.len() * 8);
    for (traditional, simplified) in &content.simplifications {
        simplifications.extend(u32::from(*traditional).to_le_bytes());
        simplifications.extend(u32::from(*simplified).to_le_bytes());
    }
    let mut lengths = U32Array::default();
    for length in [
        origin_json.len(),
        content.simplifications.len(),
        word_count,
        records.len(),
        vocabulary.len(),
        vocabulary_bytes.len(),
    ] {
        lengths.push(length)?;
    }
    let body =
        [lengths.0, origin_json, simplifications, offsets.0, records, vocabulary_offsets.0, vocabulary_bytes]
            .concat();
    Ok([MAGIC, VERSION.to_le_bytes().as_slice(), ContentHash::of(&body).as_bytes(), &body].concat())
}

/// The English words of all glosses, most frequent first: their indices take the fewest bytes.
fn vocabulary(content: &LexiconContent) -> Vec<&str> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for word in content.words.values().flatten().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let mut words: Vec<(&str, u32)> = counts.into_iter().collect();
    words.sort_by(|(one, count), (other, other_count)| other_count.cmp(count).then(one.cmp(other)));
    words.into_iter().map(|(word, _)| word).collect()
}

/// An array of little-endian `u32`s.
#[derive(Default)]
struct U32Array(Vec<u8>);

impl U32Array {
    fn push(&mut self, value: usize) -> Result<(), LexiconError> {
        self.0.extend(checked_length(value)?.to_le_bytes());
        Ok(())
    }
}

/// A length as `u32`, if it does not exceed the size limit of a lexicon.
fn checked_length(length: usize) -> Result<u32, LexiconError> {
    u32::try_from(length)
        .ok()
        .filter(|length| u64::from(*length) <= MAX_LEXICON_BYTES)
        .ok_or(LexiconError::TooLarge(length as u64))
}
