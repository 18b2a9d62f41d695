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

/// Serializes a lexicon.
pub(super) fn serialize(content: &LexiconContent, origin: &Origin) -> Result<Vec<u8>, LexiconError> {
    let vocabulary = vocabulary(content);
    let numbers: HashMap<&str, u32> = vocabulary.iter().copied().zip(0..).collect();
    let (mut offsets, mut records) = (U32Array::default(), Vec::new());
    let short_words = content.words.iter().filter(|(word, _)| word.chars().count() <= MAX_WORD_CHARS);
    for (word, glosses) in short_words {
        offsets.push(records.len())?;
        // The longest word takes 32 bytes, so this never saturates.
        records.push(u8::try_from(word.len()).unwrap_or(u8::MAX));
        records.extend_from_slice(word.as_bytes());
        write_varint(checked_length(glosses.len())?, &mut records);
        for gloss in glosses {
            write_varint(checked_length(gloss.len())?, &mut records);
            for english in gloss {
                write_varint(numbers.get(english.as_str()).copied().unwrap_or_default(), &mut records);
            }
        }
    }
    let words = offsets.0.len() / 4;
    offsets.push(records.len())?;
    let mut english = (U32Array::default(), Vec::new());
    for word in &vocabulary {
        english.0.push(english.1.len())?;
        english.1.extend_from_slice(word.as_bytes());
    }
    english.0.push(english.1.len())?;
    let origin_json = serde_json::to_vec(origin).unwrap_or_default();
    let mut simplifications = Vec::with_capacity(content.simplifications.len() * 8);
    for (traditional, simplified) in &content.simplifications {
        simplifications.extend(u32::from(*traditional).to_le_bytes());
        simplifications.extend(u32::from(*simplified).to_le_bytes());
    }
    let mut body = U32Array::default();
    for number in [
        origin_json.len(),
        content.simplifications.len(),
        words,
        records.len(),
        vocabulary.len(),
        english.1.len(),
    ] {
        body.push(number)?;
    }
    let body = [body.0, origin_json, simplifications, offsets.0, records, english.0.0, english.1].concat();
    Ok([MAGIC, VERSION.to_le_bytes().as_slice(), ContentHash::of(&body).as_bytes(), &body].concat())
}

/// The English words of all glosses, most frequent first: their indices take the fewest bytes.
fn vocabulary(content: &LexiconContent) -> Vec<&str> {
    let mut uses: HashMap<&str, u32> = HashMap::new();
    for word in content.words.values().flatten().flatten() {
        *uses.entry(word).or_default() += 1;
    }
    let mut words: Vec<(&str, u32)> = uses.into_iter().collect();
    words.sort_by(|(one, count), (other, others)| others.cmp(count).then(one.cmp(other)));
    words.into_iter().map(|(word, _)| word).collect()
}

/// An array of little-endian `u32`s.
#[derive(Default)]
struct U32Array(Vec<u8>);

impl U32Array {
    fn push(&mut self, number: usize) -> Result<(), LexiconError> {
        self.0.extend(checked_length(number)?.to_le_bytes());
        Ok(())
    }
}

fn checked_length(number: usize) -> Result<u32, LexiconError> {
    u32::try_from(number)
        .ok()
        .filter(|number| u64::from(*number) <= MAX_LEXICON_BYTES)
        .ok_or(LexiconError::TooLarge(number as u64))
}
