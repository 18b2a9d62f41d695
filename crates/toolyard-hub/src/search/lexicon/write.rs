//! Writes a lexicon in the form that is searched where it lies.

use std::collections::{BTreeMap, HashMap};

use toolyard_core::ContentHash;

use super::{
    build::Origin,
    error::{LARGEST, LexiconError},
    form::{FORM, LONGEST_WORD, MAGIC, write_number},
};

/// What is written: words in simplified letters with what they mean, and how traditional letters are simplified.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) words: BTreeMap<String, Vec<Vec<String>>>,
    pub(super) letters: BTreeMap<char, char>,
}

impl Content {
    /// A word in simplified letters.
    pub(super) fn simplified(&self, word: &str) -> String {
        word.chars().map(|letter| self.letters.get(&letter).copied().unwrap_or(letter)).collect()
    }
}

/// The bytes of a lexicon.
pub(super) fn write(content: &Content, origin: &Origin) -> Result<Vec<u8>, LexiconError> {
    let vocabulary = vocabulary(content);
    let numbers: HashMap<&str, u32> = vocabulary.iter().copied().zip(0..).collect();
    let (mut offsets, mut records) = (Row::default(), Vec::new());
    let fitting = content.words.iter().filter(|(word, _)| word.chars().count() <= LONGEST_WORD);
    for (word, glosses) in fitting {
        offsets.push(records.len())?;
        // A word of the longest kind takes 32 bytes, so this always fits.
        records.push(u8::try_from(word.len()).unwrap_or(u8::MAX));
        records.extend_from_slice(word.as_bytes());
        write_number(length(glosses.len())?, &mut records);
        for gloss in glosses {
            write_number(length(gloss.len())?, &mut records);
            for english in gloss {
                write_number(numbers.get(english.as_str()).copied().unwrap_or_default(), &mut records);
            }
        }
    }
    let words = offsets.0.len() / 4;
    offsets.push(records.len())?;
    let mut english = (Row::default(), Vec::new());
    for word in &vocabulary {
        english.0.push(english.1.len())?;
        english.1.extend_from_slice(word.as_bytes());
    }
    english.0.push(english.1.len())?;
    let notice = serde_json::to_vec(origin).unwrap_or_default();
    let mut letters = Vec::with_capacity(content.letters.len() * 8);
    for (traditional, simplified) in &content.letters {
        letters.extend(u32::from(*traditional).to_le_bytes());
        letters.extend(u32::from(*simplified).to_le_bytes());
    }
    let mut body = Row::default();
    for number in
        [notice.len(), content.letters.len(), words, records.len(), vocabulary.len(), english.1.len()]
    {
        body.push(number)?;
    }
    let body = [body.0, notice, letters, offsets.0, records, english.0.0, english.1].concat();
    Ok([MAGIC, FORM.to_le_bytes().as_slice(), ContentHash::of(&body).as_bytes(), &body].concat())
}

/// The English words of all glosses, the commonest first so that they take the fewest bytes.
fn vocabulary(content: &Content) -> Vec<&str> {
    let mut uses: HashMap<&str, u32> = HashMap::new();
    for word in content.words.values().flatten().flatten() {
        *uses.entry(word).or_default() += 1;
    }
    let mut words: Vec<(&str, u32)> = uses.into_iter().collect();
    words.sort_by(|(one, count), (other, others)| others.cmp(count).then(one.cmp(other)));
    words.into_iter().map(|(word, _)| word).collect()
}

/// Numbers of four bytes.
#[derive(Default)]
struct Row(Vec<u8>);

impl Row {
    fn push(&mut self, number: usize) -> Result<(), LexiconError> {
        self.0.extend(length(number)?.to_le_bytes());
        Ok(())
    }
}

fn length(number: usize) -> Result<u32, LexiconError> {
    u32::try_from(number)
        .ok()
        .filter(|number| u64::from(*number) <= LARGEST)
        .ok_or(LexiconError::TooLarge(number as u64))
}
