//! Cuts text into the pieces of words that a model knows, as BERT's tokenizer does.

use std::collections::HashMap;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::error::EmbeddingError;

const FILE: &str = "tokenizer.json";

/// More of a text than any model looks at.
const MAX_CHARACTERS: usize = 16_384;

/// A WordPiece vocabulary and how text is prepared for it.
#[derive(Debug)]
pub(super) struct WordPieces {
    pieces: HashMap<Box<str>, usize>,
    count: usize,
    continuing: Box<str>,
    longest_word: usize,
    longest_piece: usize,
    unknown: Box<str>,
    letters: Letters,
}

#[derive(Debug, Clone, Copy)]
struct Letters {
    clean: bool,
    chinese_apart: bool,
    strip_accents: bool,
    lowercase: bool,
}

#[derive(Deserialize)]
struct TokenizerFile {
    normalizer: Option<Normalizer>,
    model: Model,
}

#[derive(Deserialize)]
struct Normalizer {
    r#type: String,
    clean_text: Option<bool>,
    handle_chinese_chars: Option<bool>,
    strip_accents: Option<bool>,
    lowercase: Option<bool>,
}

#[derive(Deserialize)]
struct Model {
    /// Older files leave it out.
    r#type: Option<String>,
    unk_token: Option<Box<str>>,
    continuing_subword_prefix: Option<Box<str>>,
    max_input_chars_per_word: Option<usize>,
    /// A map for WordPiece; other kinds write something else here.
    vocab: serde_json::Value,
}

impl WordPieces {
    /// Reads a `tokenizer.json`.
    pub(super) fn from_json(bytes: &[u8]) -> Result<Self, EmbeddingError> {
        let file: TokenizerFile =
            serde_json::from_slice(bytes).map_err(|error| EmbeddingError::damaged(FILE, error))?;
        let kind = file.model.r#type.as_deref().unwrap_or("WordPiece");
        if kind != "WordPiece" {
            return Err(EmbeddingError::unsupported(format!("a tokenizer of type `{kind}`")));
        }
        let letters = Letters::of(file.normalizer)?;
        let serde_json::Value::Object(vocabulary) = file.model.vocab else {
            return Err(EmbeddingError::damaged(FILE, "its vocabulary is not a map"));
        };
        let pieces = vocabulary
            .into_iter()
            .map(|(piece, number)| Some((piece.into_boxed_str(), usize::try_from(number.as_u64()?).ok()?)))
            .collect::<Option<HashMap<_, _>>>()
            .ok_or_else(|| EmbeddingError::damaged(FILE, "a piece has no number"))?;
        Ok(Self {
            continuing: file.model.continuing_subword_prefix.unwrap_or_else(|| "##".into()),
            longest_word: file.model.max_input_chars_per_word.unwrap_or(100).min(MAX_CHARACTERS),
            unknown: file.model.unk_token.unwrap_or_else(|| "[UNK]".into()),
            ..Self::new(pieces, letters)
        })
    }

    /// Reads a `vocab.txt`: one piece in a line, for lowercase text.
    pub(super) fn from_lines(bytes: &[u8]) -> Result<Self, EmbeddingError> {
        let text = std::str::from_utf8(bytes).map_err(|error| EmbeddingError::damaged("vocab.txt", error))?;
        let pieces = text.lines().enumerate().map(|(number, piece)| (piece.into(), number)).collect();
        Ok(Self::new(
            pieces,
            Letters { clean: true, chinese_apart: true, strip_accents: true, lowercase: true },
        ))
    }

    fn new(pieces: HashMap<Box<str>, usize>, letters: Letters) -> Self {
        Self {
            count: pieces.values().max().map_or(0, |most| most.saturating_add(1)),
            longest_piece: pieces.keys().map(|piece| piece.chars().count()).max().unwrap_or(0),
            pieces,
            continuing: "##".into(),
            longest_word: 100,
            unknown: "[UNK]".into(),
            letters,
        }
    }

    /// One more than the highest number of a piece.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The number of one piece.
    #[cfg(feature = "embedding-bert")]
    pub(super) fn number(&self, piece: &str) -> Option<usize> {
        self.pieces.get(piece).copied()
    }

    /// The number that stands for words that are not known.
    #[cfg(feature = "embedding-bert")]
    pub(super) fn unknown(&self) -> Option<usize> {
        self.number(&self.unknown)
    }

    /// The pieces of a text in order; `None` for a word that is not known.
    pub(super) fn of(&self, text: &str) -> impl Iterator<Item = Option<usize>> {
        words(&self.letters.prepare(text)).into_iter().flat_map(|word| self.of_word(&word))
    }

    /// The longest piece that fits, then the longest that goes on from there; nothing if the word cannot be cut so.
    fn of_word(&self, word: &str) -> Vec<Option<usize>> {
        if word.chars().count() > self.longest_word {
            return vec![None];
        }
        let mut found = Vec::new();
        let mut rest = word;
        let mut candidate = String::new();
        while !rest.is_empty() {
            let start = if found.is_empty() { "" } else { &*self.continuing };
            let ends = rest.char_indices().map(|(at, letter)| at + letter.len_utf8());
            let ends: Vec<usize> = ends.take(self.longest_piece).collect();
            let longest = ends.into_iter().rev().find_map(|end| {
                let (head, tail) = rest.split_at_checked(end)?;
                candidate.clear();
                candidate.push_str(start);
                candidate.push_str(head);
                Some((*self.pieces.get(candidate.as_str())?, tail))
            });
            let Some((piece, tail)) = longest else { return vec![None] };
            found.push((piece != self.unknown_number()).then_some(piece));
            rest = tail;
        }
        found
    }

    fn unknown_number(&self) -> usize {
        self.pieces.get(&self.unknown).copied().unwrap_or(usize::MAX)
    }
}

impl Letters {
    fn of(normalizer: Option<Normalizer>) -> Result<Self, EmbeddingError> {
        let Some(normalizer) = normalizer else {
            return Ok(Self { clean: false, chinese_apart: false, strip_accents: false, lowercase: false });
        };
        if normalizer.r#type != "BertNormalizer" {
            return Err(EmbeddingError::unsupported(format!("a normalizer of type `{}`", normalizer.r#type)));
        }
        let lowercase = normalizer.lowercase.unwrap_or(true);
        Ok(Self {
            clean: normalizer.clean_text.unwrap_or(true),
            chinese_apart: normalizer.handle_chinese_chars.unwrap_or(true),
            strip_accents: normalizer.strip_accents.unwrap_or(lowercase),
            lowercase,
        })
    }

    fn prepare(self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len().min(MAX_CHARACTERS));
        for letter in text.chars().take(MAX_CHARACTERS) {
            if self.chinese_apart && is_chinese(letter) {
                clean.extend([' ', letter, ' ']);
            } else if !self.clean {
                clean.push(letter);
            } else if letter.is_whitespace() {
                clean.push(' ');
            } else if !is_control(letter) {
                clean.push(letter);
            }
        }
        if self.strip_accents {
            let is_mark = |letter: &char| letter.general_category() == GeneralCategory::NonspacingMark;
            clean = clean.nfd().filter(|letter| !is_mark(letter)).collect();
        }
        if self.lowercase { clean.chars().flat_map(char::to_lowercase).collect() } else { clean }
    }
}

/// White space parts words; every mark of punctuation is a word of its own.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in text.split_whitespace() {
        let mut word = String::new();
        for letter in part.chars() {
            if is_punctuation(letter) {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                words.push(letter.to_string());
            } else {
                word.push(letter);
            }
        }
        words.extend((!word.is_empty()).then_some(word));
    }
    words
}

fn is_punctuation(letter: char) -> bool {
    letter.is_ascii_punctuation() || letter.general_category_group() == GeneralCategoryGroup::Punctuation
}

fn is_control(letter: char) -> bool {
    letter == '\u{fffd}' || letter.general_category_group() == GeneralCategoryGroup::Other
}

fn is_chinese(letter: char) -> bool {
    matches!(u32::from(letter),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F
        | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}
