//! Splits text into tokens: words, the parts of identifiers, and unigrams and bigrams of Chinese, Japanese and Korean.

/// What a token is in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A whole word.
    Word,
    /// A part of an identifier such as `readFile`.
    Part,
    /// A whole identifier: other texts may write it as one word.
    Identifier,
    /// A name such as `GitLab` that is one word; only in requests.
    Name,
    /// A unigram or bigram of a script without spaces between words.
    CjkGram,
}

/// Longer identifiers are indexed by their parts only.
const MAX_IDENTIFIER_BYTES: usize = 30;
/// Longer tokens are data, not words, and are skipped.
pub(crate) const MAX_TOKEN_BYTES: usize = 64;

/// Calls `each` with every token of a text, in lowercase and in order.
pub(crate) fn tokenize(text: &str, mut each: impl FnMut(&str, TokenKind)) {
    let mut run = AlphanumericRun::default();
    let mut grams = CjkGrams::default();
    for letter in text.chars() {
        if is_cjk(letter) {
            run.finish(&mut each);
            grams.push(letter, &mut each);
        } else if letter.is_alphanumeric() {
            grams.finish();
            run.push(letter);
        } else {
            grams.finish();
            run.finish(&mut each);
        }
    }
    run.finish(&mut each);
}

/// Whether a character is Chinese, Japanese or Korean.
pub(crate) fn is_cjk(letter: char) -> bool {
    matches!(u32::from(letter),
        0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff)
}

/// A run of letters and digits.
#[derive(Default)]
struct AlphanumericRun {
    letters: Vec<char>,
    lowercase: String,
    /// Byte offsets in `lowercase` at which the parts begin.
    part_starts: Vec<usize>,
}

impl AlphanumericRun {
    fn push(&mut self, letter: char) {
        self.letters.push(letter);
    }

    fn finish(&mut self, each: &mut impl FnMut(&str, TokenKind)) {
        if self.letters.is_empty() {
            return;
        }
        self.split();
        if let [_] = self.part_starts.as_slice() {
            if self.lowercase.len() <= MAX_TOKEN_BYTES {
                each(&self.lowercase, TokenKind::Word);
            }
        } else {
            self.for_each_part(each);
        }
        self.letters.clear();
        self.lowercase.clear();
        self.part_starts.clear();
    }

    /// Splits where case or digits change: `readFile`, `HTTPServer`, `mp3`.
    fn split(&mut self) {
        let mut before: Option<char> = None;
        for (at, &letter) in self.letters.iter().enumerate() {
            // `PDFs` is one word: the plural of an acronym has no part of its own.
            let ends_plural = self.letters.get(at + 1..) == Some(&['s']);
            let after = self.letters.get(at + 1).copied().filter(|_| !ends_plural);
            if before.is_none_or(|before| is_boundary(before, letter, after)) {
                self.part_starts.push(self.lowercase.len());
            }
            self.lowercase.extend(letter.to_lowercase());
            before = Some(letter);
        }
    }

    fn for_each_part(&self, each: &mut impl FnMut(&str, TokenKind)) {
        let ends = self.part_starts.iter().copied().skip(1).chain([self.lowercase.len()]);
        for (start, end) in self.part_starts.iter().copied().zip(ends) {
            let Some(part) = self.lowercase.get(start..end) else { continue };
            // A part of one character, such as `v` in `v2`, says nothing.
            if part.len() <= MAX_TOKEN_BYTES && part.chars().nth(1).is_some() {
                each(part, TokenKind::Part);
            }
        }
        if self.lowercase.len() <= MAX_IDENTIFIER_BYTES {
            each(&self.lowercase, TokenKind::Identifier);
        }
    }
}

fn is_boundary(before: char, letter: char, after: Option<char>) -> bool {
    let starts_word = letter.is_uppercase()
        && (before.is_lowercase() || (before.is_uppercase() && after.is_some_and(char::is_lowercase)));
    starts_word || letter.is_numeric() != before.is_numeric()
}

/// Emits every character of a Chinese, Japanese or Korean run and every pair of adjacent ones.
#[derive(Default)]
struct CjkGrams {
    before: Option<char>,
    pair: String,
}

impl CjkGrams {
    fn push(&mut self, letter: char, each: &mut impl FnMut(&str, TokenKind)) {
        if let Some(before) = self.before {
            self.pair.clear();
            self.pair.push(before);
            self.pair.push(letter);
            each(&self.pair, TokenKind::CjkGram);
        }
        let mut buffer = [0; 4];
        each(letter.encode_utf8(&mut buffer), TokenKind::CjkGram);
        self.before = Some(letter);
    }

    fn finish(&mut self) {
        self.before = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        tokenize(text, |word, _| all.push(word.to_owned()));
        all
    }

    #[test]
    fn identifiers_are_split_into_parts_and_kept_whole() {
        assert_eq!(tokens("readDataFromExcel"), ["read", "data", "from", "excel", "readdatafromexcel"]);
        assert_eq!(tokens("read_data"), ["read", "data"]);
        assert_eq!(tokens("HTTPServer mp3"), ["http", "server", "httpserver", "mp", "mp3"]);
        assert_eq!(tokens("YouTube"), ["you", "tube", "youtube"]);
        assert_eq!(tokens("PDFs IDs"), ["pdfs", "ids"]);
    }

    #[test]
    fn chinese_is_split_into_unigrams_and_bigrams() {
        assert_eq!(tokens("读Excel文件"), ["读", "excel", "文", "文件", "件"]);
    }

    #[test]
    fn overlong_words_are_skipped() {
        assert_eq!(tokens(&"a".repeat(65)), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn every_text_can_be_tokenized(text in "\\PC*") {
            for word in tokens(&text) {
                prop_assert!(!word.is_empty() && word.chars().all(char::is_alphanumeric) || !word.is_ascii());
            }
        }
    }
}
