//! A lexicon in one piece of bytes: written once, then searched where it lies.

use std::{ops::Range, path::Path, sync::Arc};

use toolyard_core::ContentHash;

use super::{
    Lexicon, Meaning,
    build::Origin,
    error::{LARGEST, LexiconError},
    form::{FORM, HEADER, LENGTHS, LONGEST_WORD, MAGIC},
    lexicons::meanings,
    reader::{Reader, fixed_at},
};

/// A lexicon that was built from a dictionary. Cloning it costs nothing.
#[derive(Clone)]
pub struct StoredLexicon(Arc<Parts>);

struct Parts {
    bytes: Vec<u8>,
    origin: Origin,
    letters: Range<usize>,
    offsets: Range<usize>,
    words: Range<usize>,
    vocabulary_offsets: Range<usize>,
    vocabulary: Range<usize>,
}

/// No word has more meanings, and no meaning more words, than these, whatever a file says.
const MOST: u32 = 16;

impl StoredLexicon {
    /// Reads a lexicon's file.
    ///
    /// # Errors
    /// When the file cannot be read, is no lexicon, has another form, or is damaged.
    pub fn open(path: &Path) -> Result<Self, LexiconError> {
        let unreadable = |error| LexiconError::Unreadable { path: path.to_owned(), error };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > LARGEST {
            return Err(LexiconError::TooLarge(length));
        }
        Self::from_bytes(std::fs::read(path).map_err(unreadable)?)
    }

    /// Takes the bytes of a lexicon.
    ///
    /// # Errors
    /// When they are no lexicon, have another form, or are damaged.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, LexiconError> {
        let mut reader = Reader(&bytes);
        if reader.take(MAGIC.len()) != Some(MAGIC) {
            return Err(LexiconError::NotALexicon);
        }
        match reader.fixed() {
            Some(FORM) => {}
            Some(found) => return Err(LexiconError::OtherForm { found, known: FORM }),
            None => return Err(LexiconError::Damaged("it ends in its header")),
        }
        let checksum = reader.take(32);
        if checksum != Some(ContentHash::of(reader.0).as_bytes().as_slice()) {
            return Err(LexiconError::Damaged("its checksum does not fit"));
        }
        let parts = parts(&mut reader, &bytes).ok_or(LexiconError::Damaged("its parts do not fit"))?;
        let origin = bytes.get(parts.0.clone()).and_then(|notice| serde_json::from_slice(notice).ok());
        let origin = origin.ok_or(LexiconError::Damaged("its notice cannot be read"))?;
        let (_, letters, offsets, words, vocabulary_offsets, vocabulary) = parts;
        Ok(Self(Arc::new(Parts { bytes, origin, letters, offsets, words, vocabulary_offsets, vocabulary })))
    }

    /// Where it comes from and under which licence it may be used.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// How many words it has.
    pub fn len(&self) -> usize {
        (self.0.offsets.len() / 4).saturating_sub(1)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes it takes.
    pub fn size(&self) -> usize {
        self.0.bytes.len()
    }

    fn part(&self, place: &Range<usize>) -> &[u8] {
        self.0.bytes.get(place.clone()).unwrap_or_default()
    }

    /// A letter as its words are written: the simplified form of a traditional one.
    pub(super) fn simplified(&self, letter: char) -> char {
        let letters = self.part(&self.0.letters);
        let pair = |at: usize| fixed_at(letters, at * 2);
        let at = first(0..letters.len() / 8, |at| pair(at).is_some_and(|known| known < u32::from(letter)));
        match pair(at) {
            Some(known) if known == u32::from(letter) => {
                fixed_at(letters, at * 2 + 1).and_then(char::from_u32).unwrap_or(letter)
            }
            _ => letter,
        }
    }

    /// Tells every word with which these letters begin: how many letters it has, and its number.
    pub(super) fn words_at(&self, letters: &[char], mut found: impl FnMut(usize, u32)) {
        let mut prefix = String::with_capacity(LONGEST_WORD * 4);
        let mut range = 0..self.len();
        for (index, letter) in letters.iter().take(LONGEST_WORD).enumerate() {
            prefix.push(*letter);
            let wanted = prefix.as_bytes();
            let start = first(range.clone(), |at| self.word(at).is_some_and(|word| word < wanted));
            let end =
                first(start..range.end, |at| self.word(at).is_some_and(|word| word.starts_with(wanted)));
            if start >= end {
                return;
            }
            if self.word(start) == Some(wanted)
                && let Ok(number) = u32::try_from(start)
            {
                found(index + 1, number);
            }
            range = start..end;
        }
    }

    /// What a word's record holds: the word, then its glosses.
    fn record(&self, at: usize) -> Option<(&[u8], Reader<'_>)> {
        let offsets = self.part(&self.0.offsets);
        let start = usize::try_from(fixed_at(offsets, at)?).ok()?;
        let end = usize::try_from(fixed_at(offsets, at + 1)?).ok()?;
        let mut reader = Reader(self.part(&self.0.words).get(start..end)?);
        let length = reader.byte()?;
        Some((reader.take(length.into())?, reader))
    }

    fn word(&self, at: usize) -> Option<&[u8]> {
        self.record(at).map(|(word, _)| word)
    }

    /// What the word of this number may mean; as much of it as can be read.
    pub(super) fn glosses(&self, number: u32) -> Vec<Vec<String>> {
        let mut glosses = Vec::new();
        let record = usize::try_from(number).ok().and_then(|at| self.record(at));
        let Some((_, mut reader)) = record else { return glosses };
        for _ in 0..reader.number().unwrap_or(0).min(MOST) {
            let count = reader.number().unwrap_or(0).min(MOST);
            let words: Option<Vec<String>> = (0..count).map(|_| self.english(reader.number()?)).collect();
            match words {
                Some(words) if !words.is_empty() => glosses.push(words),
                _ => break,
            }
        }
        glosses
    }

    fn english(&self, number: u32) -> Option<String> {
        let offsets = self.part(&self.0.vocabulary_offsets);
        let at = usize::try_from(number).ok()?;
        let start = usize::try_from(fixed_at(offsets, at)?).ok()?;
        let end = usize::try_from(fixed_at(offsets, at + 1)?).ok()?;
        let word = self.part(&self.0.vocabulary).get(start..end)?;
        std::str::from_utf8(word).ok().map(str::to_owned)
    }
}

impl std::fmt::Debug for StoredLexicon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredLexicon").field("origin", &self.0.origin).field("words", &self.len()).finish()
    }
}

impl Lexicon for StoredLexicon {
    fn meanings(&self, text: &str) -> Vec<Meaning> {
        meanings(&[self], text)
    }
}

/// The first place in a range at which a condition that holds up to somewhere holds no longer.
fn first(range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle) { start = middle + 1 } else { end = middle }
    }
    start
}

type Places = (Range<usize>, Range<usize>, Range<usize>, Range<usize>, Range<usize>, Range<usize>);

/// Where the parts lie; none if the lengths do not add up to exactly what is there.
fn parts(reader: &mut Reader<'_>, bytes: &[u8]) -> Option<Places> {
    let mut lengths = [0_usize; LENGTHS];
    for length in &mut lengths {
        *length = usize::try_from(reader.fixed()?).ok()?;
    }
    let [notice, letters, words, word_bytes, vocabulary, vocabulary_bytes] = lengths;
    let mut at = HEADER + LENGTHS * 4;
    let mut place = |length: usize| {
        let start = at;
        at = start.checked_add(length)?;
        Some(start..at)
    };
    let row = |count: usize, width: usize| count.checked_mul(width);
    let places = (
        place(notice)?,
        place(row(letters, 8)?)?,
        place(row(words.checked_add(1)?, 4)?)?,
        place(word_bytes)?,
        place(row(vocabulary.checked_add(1)?, 4)?)?,
        place(vocabulary_bytes)?,
    );
    (places.5.end == bytes.len()).then_some(places)
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
