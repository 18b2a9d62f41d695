//! Cuts a text into the words that are searched: identifiers into their parts, Chinese, Japanese and Korean into
//! single characters and pairs.

/// How a word came out of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It stood there as it is.
    Word,
    /// A part of an identifier such as `readFile`.
    Part,
    /// All parts of an identifier together, which is how others may write it.
    Whole,
    /// One character of a script without spaces, or two that stand together.
    Gram,
}

/// No identifier written as one word is longer.
const LONGEST_WHOLE: usize = 30;
/// A longer run without a space is data, not a word.
pub(crate) const LONGEST_WORD: usize = 64;

/// Calls `each` with every word of a text in lowercase, in order.
pub(crate) fn words(text: &str, mut each: impl FnMut(&str, Cut)) {
    let mut run = Run::default();
    let mut grams = Grams::default();
    for letter in text.chars() {
        if is_unspaced(letter) {
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

/// Whether a character belongs to a script that puts no spaces between words.
pub(crate) fn is_unspaced(letter: char) -> bool {
    matches!(u32::from(letter),
        0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff)
}

/// Letters and digits without anything between them.
#[derive(Default)]
struct Run {
    letters: Vec<char>,
    lowercase: String,
    /// Where parts begin in `lowercase`.
    parts: Vec<usize>,
}

impl Run {
    fn push(&mut self, letter: char) {
        self.letters.push(letter);
    }

    fn finish(&mut self, each: &mut impl FnMut(&str, Cut)) {
        if self.letters.is_empty() {
            return;
        }
        self.cut();
        if let [_] = self.parts.as_slice() {
            if self.lowercase.len() <= LONGEST_WORD {
                each(&self.lowercase, Cut::Word);
            }
        } else {
            self.each_part(each);
        }
        self.letters.clear();
        self.lowercase.clear();
        self.parts.clear();
    }

    /// Where case or kind changes: `readFile`, `HTTPServer`, `mp3`.
    fn cut(&mut self) {
        let mut before: Option<char> = None;
        for (at, &letter) in self.letters.iter().enumerate() {
            let after = self.letters.get(at + 1).copied();
            if before.is_none_or(|before| is_boundary(before, letter, after)) {
                self.parts.push(self.lowercase.len());
            }
            self.lowercase.extend(letter.to_lowercase());
            before = Some(letter);
        }
    }

    fn each_part(&self, each: &mut impl FnMut(&str, Cut)) {
        let ends = self.parts.iter().copied().skip(1).chain([self.lowercase.len()]);
        for (start, end) in self.parts.iter().copied().zip(ends) {
            let Some(part) = self.lowercase.get(start..end) else { continue };
            // A lone letter between digits says nothing.
            if part.len() <= LONGEST_WORD && part.chars().nth(1).is_some() {
                each(part, Cut::Part);
            }
        }
        if self.lowercase.len() <= LONGEST_WHOLE {
            each(&self.lowercase, Cut::Whole);
        }
    }
}

fn is_boundary(before: char, letter: char, after: Option<char>) -> bool {
    let begins_word = letter.is_uppercase()
        && (before.is_lowercase() || (before.is_uppercase() && after.is_some_and(char::is_lowercase)));
    begins_word || letter.is_numeric() != before.is_numeric()
}

/// Characters of a script without spaces.
#[derive(Default)]
struct Grams {
    before: Option<char>,
    pair: String,
}

impl Grams {
    fn push(&mut self, letter: char, each: &mut impl FnMut(&str, Cut)) {
        if let Some(before) = self.before {
            self.pair.clear();
            self.pair.push(before);
            self.pair.push(letter);
            each(&self.pair, Cut::Gram);
        }
        let mut alone = [0; 4];
        each(letter.encode_utf8(&mut alone), Cut::Gram);
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

    fn cut(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        words(text, |word, _| all.push(word.to_owned()));
        all
    }

    #[test]
    fn identifiers_are_found_by_their_parts_and_whole() {
        assert_eq!(cut("readDataFromExcel"), ["read", "data", "from", "excel", "readdatafromexcel"]);
        assert_eq!(cut("read_data"), ["read", "data"]);
        assert_eq!(cut("HTTPServer mp3"), ["http", "server", "httpserver", "mp", "mp3"]);
        assert_eq!(cut("YouTube"), ["you", "tube", "youtube"]);
    }

    #[test]
    fn chinese_is_found_by_characters_and_pairs() {
        assert_eq!(cut("读Excel文件"), ["读", "excel", "文", "文件", "件"]);
    }

    #[test]
    fn data_is_no_word() {
        assert_eq!(cut(&"a".repeat(65)), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn every_text_can_be_cut(text in "\\PC*") {
            for word in cut(&text) {
                prop_assert!(!word.is_empty() && word.chars().all(char::is_alphanumeric) || !word.is_ascii());
            }
        }
    }
}
