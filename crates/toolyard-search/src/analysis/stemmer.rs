//! Stems words, in the language of their text: `deploys`, `deployed` and `deploying` become one term.

use std::{
    collections::{BTreeMap, HashSet},
    sync::LazyLock,
};

use rust_stemmers::{Algorithm, Stemmer};

/// Stems of stop words.
static STOP_TERMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let stemmer = Stemmer::create(Algorithm::English);
    include_str!("stop_words.txt").split_whitespace().map(|word| stemmer.stem(word).into_owned()).collect()
});

/// Frequent short words by which the language of a text is detected.
const LANGUAGE_MARKERS: [(Algorithm, &str); 10] = [
    (Algorithm::French, " le les une des du est pour dans avec sur qui que au aux cette "),
    (Algorithm::German, " der das den und ist nicht ein eine mit auf für von zu im wird "),
    (Algorithm::Spanish, " el los las una del por para con que es en un al esta se "),
    (Algorithm::Portuguese, " os uma do da dos das para com que não em um ao por é "),
    (Algorithm::Italian, " il gli una del della di che per con non è un nel sono dei "),
    (Algorithm::Dutch, " het een van de voor met dat niet zijn op te aan naar wordt ook "),
    (Algorithm::Swedish, " och att det som en ett för med av till är på inte den från "),
    (Algorithm::Danish, " og at det som en et for med af til er på ikke den fra "),
    (Algorithm::Turkish, " ve bir bu için ile olan olarak daha çok gibi ne da de mi var "),
    (Algorithm::Romanian, " și un o de la cu pentru este în din care pe nu sau al "),
];
/// The marker words, packed and sorted, with a bit for every language that has them.
static MARKER_LANGUAGES: LazyLock<Vec<(u64, u16)>> = LazyLock::new(|| {
    let mut languages: BTreeMap<u64, u16> = BTreeMap::new();
    for (language, (_, words)) in LANGUAGE_MARKERS.iter().enumerate() {
        for word in words.split(' ').filter_map(pack_word) {
            *languages.entry(word).or_default() |= 1 << language;
        }
    }
    languages.into_iter().collect()
});
/// The stop terms, packed and sorted.
static PACKED_STOP_TERMS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut words: Vec<u64> = STOP_TERMS.iter().filter_map(|word| pack_word(word)).collect();
    words.sort_unstable();
    words
});
/// Marker words needed to detect a language. Low, because texts about tools are short.
const MIN_MARKER_WORDS: usize = 2;

/// Stems the words of one text.
pub(crate) struct TextStemmer {
    english: Stemmer,
    /// Stemmer of the text's language, if it is not English.
    text_language: Option<Stemmer>,
}

impl TextStemmer {
    /// Detects the language of a text by its script and its marker words.
    pub(crate) fn for_text(text: &str) -> Self {
        Self {
            english: Stemmer::create(Algorithm::English),
            text_language: detect_language(text).map(Stemmer::create),
        }
    }

    /// Calls `each` with the English stem of a lowercase word and, where it differs, with its stem in the language of the
    /// text. Both, because the language of a short request cannot be detected, and it is then stemmed as English.
    pub(crate) fn for_each_term(&self, word: &str, mut each: impl FnMut(&str)) {
        let english = self.english.stem(word);
        each(&english);
        if let Some(stemmer) = &self.text_language {
            let stem = stemmer.stem(word);
            if stem != english {
                each(&stem);
            }
        }
    }

    /// Calls `each` with the stem of a lowercase word in the language of the text, where it differs from the English one.
    pub(crate) fn with_other_term(&self, word: &str, each: impl FnOnce(&str)) {
        if let Some(stemmer) = &self.text_language {
            let stem = stemmer.stem(word);
            if stem != self.english.stem(word) {
                each(&stem);
            }
        }
    }
}

pub(crate) fn stem_english(word: &str) -> String {
    Stemmer::create(Algorithm::English).stem(word).into_owned()
}

pub(crate) fn is_stop_term(term: &str) -> bool {
    STOP_TERMS.contains(term)
}

/// The language of a text, or `None` for English and unknown ones. Runs for every indexed text, hence packed words.
fn detect_language(text: &str) -> Option<Algorithm> {
    if !text.is_ascii()
        && let Some(algorithm) = text.chars().find_map(language_of_script)
    {
        return Some(algorithm);
    }
    let words = || text.split(|letter: char| !letter.is_alphabetic()).filter_map(pack_word);
    let mut votes = [0usize; LANGUAGE_MARKERS.len()];
    for word in words() {
        let Ok(at) = MARKER_LANGUAGES.binary_search_by_key(&word, |(word, _)| *word) else { continue };
        let languages = MARKER_LANGUAGES.get(at).map_or(0, |(_, languages)| *languages);
        for (language, vote) in votes.iter_mut().enumerate() {
            *vote += usize::from(languages >> language & 1 == 1);
        }
    }
    let most_votes = votes.iter().copied().max().filter(|votes| *votes >= MIN_MARKER_WORDS)?;
    let english_votes = words().filter(|word| PACKED_STOP_TERMS.binary_search(word).is_ok()).count();
    if english_votes >= most_votes {
        return None;
    }
    votes
        .iter()
        .zip(LANGUAGE_MARKERS)
        .find(|(vote, _)| **vote == most_votes)
        .map(|(_, (algorithm, _))| algorithm)
}

/// Packs a word of at most eight bytes, in lowercase, into a number; `None` for empty and longer words.
fn pack_word(word: &str) -> Option<u64> {
    if word.is_empty() || word.len() > 8 {
        return None;
    }
    let mut number = 0u64;
    if word.is_ascii() {
        word.bytes().for_each(|byte| number = number << 8 | u64::from(byte.to_ascii_lowercase()));
    } else {
        word.to_lowercase().bytes().for_each(|byte| number = number << 8 | u64::from(byte));
    }
    Some(number)
}

fn language_of_script(letter: char) -> Option<Algorithm> {
    match u32::from(letter) {
        0x0370..=0x03ff => Some(Algorithm::Greek),
        0x0400..=0x04ff => Some(Algorithm::Russian),
        0x0600..=0x06ff => Some(Algorithm::Arabic),
        0x0b80..=0x0bff => Some(Algorithm::Tamil),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str, word: &str) -> Vec<String> {
        let mut all = Vec::new();
        TextStemmer::for_text(text).for_each_term(word, |term| all.push(term.to_owned()));
        all
    }

    #[test]
    fn inflections_share_one_stem() {
        for word in ["deploys", "deployed", "deploying"] {
            assert_eq!(terms("deploys the cluster", word), ["deploy"]);
        }
    }

    #[test]
    fn languages_are_detected_by_their_marker_words() {
        assert_eq!(terms("Les prévisions pour une ville", "prévisions"), ["prévision", "prévis"]);
        assert_eq!(terms("Прогноз погоды", "погоды"), ["погоды", "погод"]);
        assert_eq!(terms("Use it to list the files of a folder", "files"), ["file"]);
    }

    #[test]
    fn stop_words_are_recognized_by_their_stem() {
        assert!(is_stop_term("this") || is_stop_term(&stem_english("this")));
        assert!(!is_stop_term("file"));
    }
}
