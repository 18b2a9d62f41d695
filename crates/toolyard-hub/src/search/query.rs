//! Reads a request: its words, and for each what tools may call it. Only the best of these counts.

use std::collections::HashMap;

use super::{
    analysis::{half_pair, pair},
    index::SearchIndex,
    stem::{TextStemmer, english, is_stop_term},
    synonyms::{LONGEST_PHRASE, synonyms},
    terms::{DocumentId, TermId},
    values::kinds_of,
    words::{Cut, LONGEST_WORD, is_unspaced, words},
};

/// More words of a request are not looked at.
const MOST_WORDS: usize = 400;
/// More bytes of a request are not looked at.
const MOST_BYTES: usize = 16 << 10;
/// What a word of the request counts that holds a digit.
const NUMBER: f32 = 0.6;
/// What a value counts whose kind was told by its form.
const VALUE: f32 = 0.38;
/// How much saying a word again adds.
const REPETITION: f32 = 0.74;
/// What a word of the whole task counts for one of its steps.
const TASK: f32 = 0.25;
/// What two words written as one count.
const JOINED: f32 = 0.96;

/// How a word of the request leads to a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// It is the term.
    Own,
    /// Two words written as one.
    Joined,
    /// Another word of the same root.
    Relative,
    /// A word tools use for the same thing.
    Synonym,
    /// What it means in another language.
    Gloss,
    /// A value of this kind.
    Value,
}

/// One way in which a word of the request may stand in a definition.
#[derive(Debug, Clone)]
pub(crate) struct Alternative {
    /// Usually one term; where there are several, each counts its part.
    pub(crate) terms: Vec<TermId>,
    pub(crate) weight: f32,
    pub(crate) via: Via,
}

#[cfg(feature = "embedding")]
impl Alternative {
    /// Whether it is this very term.
    pub(crate) fn is_own(&self, term: TermId) -> bool {
        self.via == Via::Own && self.terms == [term]
    }
}

/// One word of the request.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    /// What tells it from others.
    pub(crate) key: String,
    /// As it was said.
    pub(crate) word: String,
    pub(crate) alternatives: Vec<Alternative>,
    pub(crate) weight: f32,
    pub(crate) sentence: usize,
}

/// Two words that stand together in the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neighbours {
    pub(crate) hash: u32,
    pub(crate) terms: [TermId; 2],
}

/// A request as it is searched for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) slots: Vec<Slot>,
    pub(crate) neighbours: Vec<Neighbours>,
    pub(crate) sentences: usize,
    /// Words that look like the exact name of a tool, in lowercase.
    pub(crate) names: Vec<String>,
    /// Tools that answered something similar before, the best first, and how much speaks for each.
    pub(crate) past: Vec<(DocumentId, f32)>,
    /// The tools nearest to it in meaning, and how near: 1 for the nearest.
    #[cfg(feature = "embedding")]
    pub(crate) near: Vec<(DocumentId, f32)>,
}

impl Query {
    /// Reads a request against what the index knows.
    pub(crate) fn read(index: &SearchIndex, text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(MOST_BYTES)).unwrap_or_default();
        let mut reader = Reader {
            index,
            query: Self::default(),
            seen: HashMap::new(),
            stop: Vec::new(),
            words_left: MOST_WORDS,
        };
        let stemmer = TextStemmer::of(text);
        for sentence in sentences(text) {
            reader.words(sentence, &stemmer);
            reader.values(sentence);
            reader.phrases(sentence);
            reader.query.sentences += 1;
        }
        reader.meanings(text);
        reader.names(text);
        reader.query.past = index.history.similar(text);
        #[cfg(feature = "embedding")]
        {
            reader.query.near = index.nearest(text);
        }
        // A request of small words only is still a request.
        if reader.query.slots.is_empty() {
            reader.query.slots = reader.stop;
        }
        reader.query
    }
}

impl Query {
    /// The same request as a step of a task, whose words count a little too.
    pub(crate) fn within(mut self, task: &Self) -> Self {
        for slot in &task.slots {
            if self.slots.iter().all(|own| own.key != slot.key) {
                self.slots.push(Slot { weight: slot.weight * TASK, sentence: 0, ..slot.clone() });
            }
        }
        self
    }
}

struct Reader<'a> {
    index: &'a SearchIndex,
    query: Query,
    /// Where a word's slot is.
    seen: HashMap<String, usize>,
    /// Words that say nothing, for when there are no others.
    stop: Vec<Slot>,
    words_left: usize,
}

impl Reader<'_> {
    fn words(&mut self, sentence: &str, stemmer: &TextStemmer) {
        let mut before: Option<(TermId, u32)> = None;
        let mut said: Vec<(String, Vec<String>, Cut)> = Vec::new();
        words(sentence, |word, cut| {
            if self.words_left > 0 {
                self.words_left -= 1;
                let mut terms = Vec::new();
                stemmer.terms(word, |term| terms.push(term.to_owned()));
                said.push((word.to_owned(), terms, cut));
            }
        });
        for (word, terms, cut) in said {
            let Some(first) = terms.first() else { continue };
            let stop = terms.iter().all(|term| is_stop_term(term));
            if !stop && matches!(cut, Cut::Word | Cut::Part) {
                before = self.neighbours(before, first);
            }
            self.word(&word, &terms, stop);
        }
    }

    fn neighbours(&mut self, before: Option<(TermId, u32)>, term: &str) -> Option<(TermId, u32)> {
        let now = (self.index.terms.id(term)?, half_pair(term));
        if let Some((other, half)) = before {
            self.query.neighbours.push(Neighbours { hash: pair(half, now.1), terms: [other, now.0] });
        }
        Some(now)
    }

    fn word(&mut self, word: &str, terms: &[String], stop: bool) {
        let Some(first) = terms.first() else { return };
        if let Some(slot) = self.seen.get(first).and_then(|at| self.query.slots.get_mut(*at)) {
            slot.weight += REPETITION / (1.0 + slot.weight);
            return;
        }
        let own = terms.iter().filter_map(|term| self.index.terms.id(term));
        let mut alternatives: Vec<Alternative> =
            own.map(|term| alternative(vec![term], Via::Own, true)).collect();
        let known = !alternatives.is_empty();
        if !stop {
            let relatives = self.index.terms.relatives(first);
            alternatives.extend(relatives.map(|term| alternative(vec![term], Via::Relative, known)));
            self.add(&mut alternatives, synonyms(first), Via::Synonym, known);
        }
        let weight = if word.bytes().any(|byte| byte.is_ascii_digit()) { NUMBER } else { 1.0 };
        self.slot(first.clone(), word, alternatives, weight, stop);
    }

    /// Adds those alternatives all of whose words stand in some definition.
    fn add(&self, to: &mut Vec<Alternative>, meant: &[Vec<String>], via: Via, known: bool) {
        for words in meant {
            let terms: Option<Vec<TermId>> = words.iter().map(|word| self.index.terms.id(word)).collect();
            to.extend(terms.filter(|terms| !terms.is_empty()).map(|terms| alternative(terms, via, known)));
        }
    }

    fn slot(&mut self, key: String, word: &str, alternatives: Vec<Alternative>, weight: f32, stop: bool) {
        if alternatives.is_empty() || self.query.slots.len() >= MOST_WORDS || self.seen.contains_key(&key) {
            return;
        }
        let slot = Slot {
            key: key.clone(),
            word: word.to_owned(),
            alternatives,
            weight,
            sentence: self.query.sentences,
        };
        if stop {
            self.seen.insert(key, usize::MAX);
            self.stop.push(slot);
        } else {
            self.seen.insert(key, self.query.slots.len());
            self.query.slots.push(slot);
        }
    }

    fn values(&mut self, sentence: &str) {
        for word in sentence.split_whitespace() {
            let Some(kinds) = kinds_of(word) else { continue };
            let terms = kinds.iter().filter_map(|kind| self.index.terms.id(&english(kind)));
            let alternatives = terms.map(|term| alternative(vec![term], Via::Value, true)).collect();
            let key = format!("value {}", kinds.first().copied().unwrap_or_default());
            self.slot(key, word, alternatives, VALUE, false);
        }
    }

    /// Words written apart that others write as one, and phrases that mean something together.
    fn phrases(&mut self, sentence: &str) {
        for run in runs(sentence) {
            for two in run.windows(2) {
                let [before, after] = two else { continue };
                if is_stop_term(&english(before)) || is_stop_term(&english(after)) {
                    continue;
                }
                let joined = english(&format!("{before}{after}"));
                let term = self.index.terms.id(&joined);
                let alternatives = term.map(|term| alternative(vec![term], Via::Joined, true));
                self.slot(
                    joined,
                    &format!("{before} {after}"),
                    alternatives.into_iter().collect(),
                    1.0,
                    false,
                );
            }
            let terms: Vec<String> = run.iter().map(|word| english(word)).collect();
            for length in 2..=LONGEST_PHRASE {
                for phrase in terms.windows(length) {
                    let key = phrase.join(" ");
                    let mut alternatives = Vec::new();
                    self.add(&mut alternatives, synonyms(&key), Via::Synonym, false);
                    let word = key.clone();
                    self.slot(key, &word, alternatives, 1.0, false);
                }
            }
        }
    }

    /// What words of other languages mean.
    fn meanings(&mut self, text: &str) {
        let Some(lexicon) = &self.index.lexicon else { return };
        if !text.chars().any(is_unspaced) {
            return;
        }
        for meaning in lexicon.meanings(text) {
            let Some(word) = text.get(meaning.word.clone()) else { continue };
            let glosses: Vec<Vec<String>> = meaning.glosses.iter().map(|gloss| terms_of(gloss)).collect();
            let mut alternatives = Vec::new();
            self.add(&mut alternatives, &glosses, Via::Gloss, false);
            self.slot(format!("gloss {word}"), word, alternatives, 1.0, false);
        }
    }

    /// Whatever is written like an identifier, and the whole request, may be a name.
    fn names(&mut self, text: &str) {
        let trimmed = text.trim();
        let is_edge = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let words = text.split_whitespace().map(|word| word.trim_matches(is_edge));
        let identifiers = words.filter(|word| word.contains('_') || is_camel_case(word));
        for name in identifiers.chain([trimmed]) {
            let name = name.to_lowercase();
            if !self.query.names.contains(&name) && !self.index.named(&name).is_empty() {
                self.query.names.push(name);
            }
        }
    }
}

/// Whether a word is written like `readFile`; `API`, `Excel` and `GitHub` are not.
fn is_camel_case(word: &str) -> bool {
    word.starts_with(char::is_lowercase)
        && word
            .chars()
            .zip(word.chars().skip(1))
            .any(|(before, letter)| before.is_lowercase() && letter.is_uppercase())
}

/// The terms of a gloss.
fn terms_of(gloss: &[String]) -> Vec<String> {
    let mut terms = Vec::new();
    for part in gloss {
        words(part, |word, cut| {
            if cut != Cut::Whole {
                terms.push(english(word));
            }
        });
    }
    terms
}

/// What an alternative counts; less where the word itself is known to tools.
fn alternative(terms: Vec<TermId>, via: Via, known: bool) -> Alternative {
    let weight = match (via, known) {
        (Via::Own | Via::Value, _) => 1.0,
        (Via::Joined, _) => JOINED,
        (Via::Relative, true) => 0.26,
        (Via::Relative, false) => 0.2,
        (Via::Synonym, true) => 0.34,
        (Via::Synonym, false) => 0.55,
        (Via::Gloss, _) => 0.7,
    };
    Alternative { terms, weight, via }
}

/// The sentences of a text; a dot ends one only before a space.
fn sentences(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        let ends = match letter {
            '?' | '!' | ';' | '\n' | '。' | '？' | '！' | '；' => true,
            '.' => text.get(end..).and_then(|rest| rest.chars().next()).is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            all.extend(text.get(start..end));
            start = end;
        }
    }
    all.extend(text.get(start..).filter(|rest| !rest.trim().is_empty()));
    all
}

/// Lowercase words that nothing but spaces, hyphens, underscores and apostrophes stand between.
fn runs(text: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word = String::new();
    for letter in text.chars().chain([' ']) {
        if letter.is_alphanumeric() && !is_unspaced(letter) {
            word.extend(letter.to_lowercase());
            continue;
        }
        // What is too long for a word stands between words like a sign.
        if word.len() > LONGEST_WORD {
            word.clear();
            all.push(Vec::new());
        }
        if !word.is_empty()
            && let Some(run) = all.last_mut()
        {
            run.push(std::mem::take(&mut word));
        }
        if !(letter.is_whitespace() || matches!(letter, '-' | '_' | '\'')) {
            all.push(Vec::new());
        }
    }
    all
}
