//! Takes endings off words, in the languages that have them: `deploys`, `deployed` and `deploying` are one term.

use std::{
    collections::{BTreeMap, HashSet},
    sync::LazyLock,
};

use rust_stemmers::{Algorithm, Stemmer};

/// Words of a request that say nothing about which tool is meant, as terms.
static STOP_TERMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let stemmer = Stemmer::create(Algorithm::English);
    include_str!("stop_words.txt").split_whitespace().map(|word| stemmer.stem(word).into_owned()).collect()
});

/// Words that only one language has, so that a text can be told by them.
const TELLING: [(Algorithm, &str); 10] = [
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
/// The same words as numbers, with a bit for each language that has them.
static TELLING_WORDS: LazyLock<Vec<(u64, u16)>> = LazyLock::new(|| {
    let mut languages: BTreeMap<u64, u16> = BTreeMap::new();
    for (number, (_, words)) in TELLING.iter().enumerate() {
        for word in words.split(' ').filter_map(small_word) {
            *languages.entry(word).or_default() |= 1 << number;
        }
    }
    languages.into_iter().collect()
});
/// The stop terms as numbers.
static STOP_WORDS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut words: Vec<u64> = STOP_TERMS.iter().filter_map(|word| small_word(word)).collect();
    words.sort_unstable();
    words
});
/// So many telling words are enough: texts about tools are short.
const ENOUGH: usize = 2;

/// Makes terms of the words of one text.
pub(crate) struct TextStemmer {
    english: Stemmer,
    /// The text's own language, if it is another.
    own: Option<Stemmer>,
}

impl TextStemmer {
    /// For a text, by the script and the small words in it.
    pub(crate) fn of(text: &str) -> Self {
        Self { english: Stemmer::create(Algorithm::English), own: language(text).map(Stemmer::create) }
    }

    /// Calls `each` with the term of a lowercase word; with two where the text's language and English differ, because a
    /// request in a few words does not tell its language.
    pub(crate) fn terms(&self, word: &str, mut each: impl FnMut(&str)) {
        let english = self.english.stem(word);
        each(&english);
        if let Some(own) = &self.own {
            let own = own.stem(word);
            if own != english {
                each(&own);
            }
        }
    }
}

/// The term of one English word.
pub(crate) fn english(word: &str) -> String {
    Stemmer::create(Algorithm::English).stem(word).into_owned()
}

/// Whether a term says nothing about which tool is meant.
pub(crate) fn is_stop_term(term: &str) -> bool {
    STOP_TERMS.contains(term)
}

/// The language of a text that is not English, as far as it shows. This is asked of every text that is indexed.
fn language(text: &str) -> Option<Algorithm> {
    if !text.is_ascii()
        && let Some(algorithm) = text.chars().find_map(script)
    {
        return Some(algorithm);
    }
    let words = || text.split(|letter: char| !letter.is_alphabetic()).filter_map(small_word);
    let mut votes = [0usize; TELLING.len()];
    for word in words() {
        let Ok(at) = TELLING_WORDS.binary_search_by_key(&word, |(word, _)| *word) else { continue };
        let languages = TELLING_WORDS.get(at).map_or(0, |(_, languages)| *languages);
        for (number, vote) in votes.iter_mut().enumerate() {
            *vote += usize::from(languages >> number & 1 == 1);
        }
    }
    let most = votes.iter().copied().max().filter(|most| *most >= ENOUGH)?;
    let english = words().filter(|word| STOP_WORDS.binary_search(word).is_ok()).count();
    if english >= most {
        return None;
    }
    votes.iter().zip(TELLING).find(|(vote, _)| **vote == most).map(|(_, (algorithm, _))| algorithm)
}

/// A word of at most eight bytes in lowercase, as a number.
fn small_word(word: &str) -> Option<u64> {
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

fn script(letter: char) -> Option<Algorithm> {
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
        TextStemmer::of(text).terms(word, |term| all.push(term.to_owned()));
        all
    }

    #[test]
    fn endings_do_not_matter() {
        for word in ["deploys", "deployed", "deploying"] {
            assert_eq!(terms("deploys the cluster", word), ["deploy"]);
        }
    }

    #[test]
    fn other_languages_are_told_by_their_small_words() {
        assert_eq!(terms("Les prévisions pour une ville", "prévisions"), ["prévision", "prévis"]);
        assert_eq!(terms("Прогноз погоды", "погоды"), ["погоды", "погод"]);
        assert_eq!(terms("Use it to list the files of a folder", "files"), ["file"]);
    }

    #[test]
    fn small_words_are_terms_too() {
        assert!(is_stop_term("this") || is_stop_term(&english("this")));
        assert!(!is_stop_term("file"));
    }
}
