//! BERT's WordPiece tokenizer.

use std::collections::HashMap;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::error::EmbeddingError;

const TOKENIZER_FILE: &str = "tokenizer.json";

/// Further characters of a text are ignored; no model reads as many.
const MAX_CHARACTERS: usize = 16_384;
/// Longer words are unknown, unless the tokenizer file has another limit.
const DEFAULT_MAX_WORD_CHARS: usize = 100;

/// A WordPiece vocabulary and its text normalizer.
#[derive(Debug)]
pub(super) struct WordPieceTokenizer {
    /// Token ids.
    vocabulary: HashMap<Box<str>, usize>,
    vocabulary_size: usize,
    /// Marks tokens that continue a word, such as `##ing`.
    continuation_prefix: Box<str>,
    /// Longer words are unknown.
    max_word_chars: usize,
    /// Length of the longest token.
    max_token_chars: usize,
    unknown_token: Box<str>,
    normalizer: TextNormalizer,
}

#[derive(Debug, Clone, Copy)]
struct TextNormalizer {
    clean: bool,
    split_chinese: bool,
    strip_accents: bool,
    lowercase: bool,
}

#[derive(Deserialize)]
struct TokenizerFile {
    normalizer: Option<NormalizerConfig>,
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct NormalizerConfig {
    r#type: String,
    clean_text: Option<bool>,
    handle_chinese_chars: Option<bool>,
    strip_accents: Option<bool>,
    lowercase: Option<bool>,
}

#[derive(Deserialize)]
struct TokenizerModel {
    /// Absent in older files.
    r#type: Option<String>,
    unk_token: Option<Box<str>>,
    continuing_subword_prefix: Option<Box<str>>,
    max_input_chars_per_word: Option<usize>,
    /// An object for WordPiece; other types differ.
    vocab: serde_json::Value,
}

impl WordPieceTokenizer {
    /// Reads a `tokenizer.json`.
    pub(super) fn from_json(bytes: &[u8]) -> Result<Self, EmbeddingError> {
        let file: TokenizerFile =
            serde_json::from_slice(bytes).map_err(|error| EmbeddingError::damaged(TOKENIZER_FILE, error))?;
        let kind = file.model.r#type.as_deref().unwrap_or("WordPiece");
        if kind != "WordPiece" {
            return Err(EmbeddingError::unsupported(format!("a tokenizer of type `{kind}`")));
        }
        let normalizer = TextNormalizer::from_config(file.normalizer)?;
        let serde_json::Value::Object(vocabulary) = file.model.vocab else {
            return Err(EmbeddingError::damaged(TOKENIZER_FILE, "the vocabulary is not an object"));
        };
        let vocabulary = vocabulary
            .into_iter()
            .map(|(token, id)| Some((token.into_boxed_str(), usize::try_from(id.as_u64()?).ok()?)))
            .collect::<Option<HashMap<_, _>>>()
            .ok_or_else(|| EmbeddingError::damaged(TOKENIZER_FILE, "a token has no valid id"))?;
        Ok(Self {
            continuation_prefix: file.model.continuing_subword_prefix.unwrap_or_else(|| "##".into()),
            max_word_chars: file
                .model
                .max_input_chars_per_word
                .unwrap_or(DEFAULT_MAX_WORD_CHARS)
                .min(MAX_CHARACTERS),
            unknown_token: file.model.unk_token.unwrap_or_else(|| "[UNK]".into()),
            ..Self::new(vocabulary, normalizer)
        })
    }

    /// Reads a `vocab.txt`: one token per line. Texts are converted to lowercase.
    pub(super) fn from_lines(bytes: &[u8]) -> Result<Self, EmbeddingError> {
        let text = std::str::from_utf8(bytes).map_err(|error| EmbeddingError::damaged("vocab.txt", error))?;
        let vocabulary = text.lines().enumerate().map(|(id, token)| (token.into(), id)).collect();
        Ok(Self::new(
            vocabulary,
            TextNormalizer { clean: true, split_chinese: true, strip_accents: true, lowercase: true },
        ))
    }

    fn new(vocabulary: HashMap<Box<str>, usize>, normalizer: TextNormalizer) -> Self {
        Self {
            vocabulary_size: vocabulary.values().max().map_or(0, |max| max.saturating_add(1)),
            max_token_chars: vocabulary.keys().map(|token| token.chars().count()).max().unwrap_or(0),
            vocabulary,
            continuation_prefix: "##".into(),
            max_word_chars: DEFAULT_MAX_WORD_CHARS,
            unknown_token: "[UNK]".into(),
            normalizer,
        }
    }

    /// One more than the highest token id.
    pub(super) fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    #[cfg(feature = "embedding-bert")]
    pub(super) fn token_id(&self, token: &str) -> Option<usize> {
        self.vocabulary.get(token).copied()
    }

    #[cfg(feature = "embedding-bert")]
    pub(super) fn unknown_id(&self) -> Option<usize> {
        self.token_id(&self.unknown_token)
    }

    /// The token ids of a text in order; `None` for an unknown word.
    pub(super) fn tokenize(&self, text: &str) -> impl Iterator<Item = Option<usize>> {
        split_words(&self.normalizer.normalize(text)).into_iter().flat_map(|word| self.tokenize_word(&word))
    }

    /// Greedy longest match; a word that cannot be split completely is unknown.
    fn tokenize_word(&self, word: &str) -> Vec<Option<usize>> {
        if word.chars().count() > self.max_word_chars {
            return vec![None];
        }
        let mut tokens = Vec::new();
        let mut rest = word;
        let mut candidate = String::new();
        while !rest.is_empty() {
            let prefix = if tokens.is_empty() { "" } else { &*self.continuation_prefix };
            let ends = rest.char_indices().map(|(at, letter)| at + letter.len_utf8());
            let ends: Vec<usize> = ends.take(self.max_token_chars).collect();
            let longest = ends.into_iter().rev().find_map(|end| {
                let (head, tail) = rest.split_at_checked(end)?;
                candidate.clear();
                candidate.push_str(prefix);
                candidate.push_str(head);
                Some((*self.vocabulary.get(candidate.as_str())?, tail))
            });
            let Some((token, tail)) = longest else { return vec![None] };
            tokens.push((token != self.unknown_id_or_max()).then_some(token));
            rest = tail;
        }
        tokens
    }

    /// The id of the unknown token; if the vocabulary has none, `usize::MAX`, which no token has.
    fn unknown_id_or_max(&self) -> usize {
        self.vocabulary.get(&self.unknown_token).copied().unwrap_or(usize::MAX)
    }
}

impl TextNormalizer {
    fn from_config(config: Option<NormalizerConfig>) -> Result<Self, EmbeddingError> {
        let Some(config) = config else {
            return Ok(Self { clean: false, split_chinese: false, strip_accents: false, lowercase: false });
        };
        if config.r#type != "BertNormalizer" {
            return Err(EmbeddingError::unsupported(format!("a normalizer of type `{}`", config.r#type)));
        }
        let lowercase = config.lowercase.unwrap_or(true);
        Ok(Self {
            clean: config.clean_text.unwrap_or(true),
            split_chinese: config.handle_chinese_chars.unwrap_or(true),
            strip_accents: config.strip_accents.unwrap_or(lowercase),
            lowercase,
        })
    }

    fn normalize(self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len().min(MAX_CHARACTERS));
        for letter in text.chars().take(MAX_CHARACTERS) {
            if self.split_chinese && is_chinese(letter) {
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

/// Splits at white space and around punctuation.
fn split_words(text: &str) -> Vec<String> {
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
