//! Takes endings off words, in the languages that have them: `deploys`, `deployed` and `deploying` are one term.

use std::{collections::HashSet, sync::LazyLock};

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

/// The language of a text that is not English, as far as it shows.
fn language(text: &str) -> Option<Algorithm> {
    if let Some(algorithm) = text.chars().find_map(script) {
        return Some(algorithm);
    }
    let mut votes = [0usize; TELLING.len()];
    for word in text.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty()) {
        if word.len() > 8 {
            continue;
        }
        let spaced = format!(" {} ", word.to_lowercase());
        for (vote, (_, words)) in votes.iter_mut().zip(&TELLING) {
            *vote += usize::from(words.contains(&spaced));
        }
    }
    let most = votes.iter().copied().max().filter(|most| *most >= ENOUGH)?;
    let english = text
        .split(|letter: char| !letter.is_alphabetic())
        .filter(|word| is_stop_term(&word.to_ascii_lowercase()))
        .count();
    if english >= most {
        return None;
    }
    votes.iter().zip(TELLING).find(|(vote, _)| **vote == most).map(|(_, (algorithm, _))| algorithm)
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
