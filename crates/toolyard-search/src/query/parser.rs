//! Parses a request: its words, and the terms under which tools may mention them.

use std::collections::HashMap;

use crate::{
    analysis::{
        bigram::{bigram_hash, term_hash},
        stemmer::{TextStemmer, is_stop_term, stem_english},
        tokenizer::{MAX_TOKEN_BYTES, TokenKind, is_cjk, tokenize},
    },
    concept::{ConceptKind, concept_mentions},
    glossary::translate,
    index::{search_index::SearchIndex, vocabulary::TermId},
    query::{
        parsed_query::{Expansion, MatchKind, Query, QueryBigram, QueryTerm, WeightedTerm},
        synonyms::{MAX_PHRASE_WORDS, synonyms},
        value_types::value_type_names,
    },
};

/// Further words of a request are ignored.
const MAX_QUERY_WORDS: usize = 400;
/// Further bytes of a request are ignored.
const MAX_QUERY_BYTES: usize = 16 << 10;
/// Weight of a word with a digit.
const NUMBER_WEIGHT: f32 = 0.6;
/// Weight of a name such as `GitLab`.
const NAME_WEIGHT: f32 = 1.6;
/// Weight of the type of a value, such as `url`.
const VALUE_WEIGHT: f32 = 0.38;
/// Weight of a subject that a word of the request stands for.
const SUBJECT_WEIGHT: f32 = 0.8;
/// Weight of an action that a word of the request stands for.
const ACTION_WEIGHT: f32 = 0.8;
/// What every further mention of a concept counts, relative to the one before.
const REPEATED_CONCEPT_WEIGHT: f32 = 0.4;
/// Weight that the repetition of a word adds.
const REPETITION_WEIGHT: f32 = 0.74;

impl Query {
    /// Parses a request of an owner against the vocabulary of an index.
    pub(crate) fn parse(index: &SearchIndex, owner: &str, text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(MAX_QUERY_BYTES)).unwrap_or_default();
        let mut parser = QueryParser {
            index,
            query: Self::default(),
            positions: HashMap::new(),
            stop_words: Vec::new(),
            words_left: MAX_QUERY_WORDS,
        };
        let stemmer = TextStemmer::for_text(text);
        for sentence in sentences(text) {
            parser.add_words(sentence, &stemmer);
            parser.add_values(sentence);
            parser.add_phrases(sentence);
            parser.query.sentence_count += 1;
        }
        parser.query.comma_count = text.trim().matches([',', '，']).count();
        parser.add_translations(text);
        parser.add_concepts(text);
        parser.add_tool_names(text);
        parser.query.past_uses =
            index.history.similar_tools(owner, text, |source, key| index.find_document(source, key));
        parser.query.nearest = index.nearest_by_embedding(text);
        // A request of stop words only is searched for by its stop words.
        if parser.query.terms.is_empty() {
            parser.query.terms = parser.stop_words;
        }
        parser.query
    }
}

/// A word of the request, its terms and what it is.
type QueryToken = (String, Vec<String>, TokenKind);

struct QueryParser<'a> {
    index: &'a SearchIndex,
    query: Query,
    /// Position of a query term by key; `usize::MAX` for stop words.
    positions: HashMap<String, usize>,
    /// Used only if the request has no other words.
    stop_words: Vec<QueryTerm>,
    /// How many more words are read.
    words_left: usize,
}

impl QueryParser<'_> {
    fn add_words(&mut self, sentence: &str, stemmer: &TextStemmer) {
        let mut previous: Option<(TermId, u32)> = None;
        let mut tokens: Vec<QueryToken> = Vec::new();
        tokenize(sentence, |token, kind| {
            if self.words_left > 0 {
                self.words_left -= 1;
                let mut terms = Vec::new();
                stemmer.for_each_term(token, |term| terms.push(term.to_owned()));
                tokens.push((token.to_owned(), terms, kind));
            }
        });
        self.merge_parts_of_names(sentence, &mut tokens);
        for (word, terms, kind) in tokens {
            let Some(first) = terms.first() else { continue };
            let is_stop_word = terms.iter().all(|term| is_stop_term(term));
            if !is_stop_word && matches!(kind, TokenKind::Word | TokenKind::Part | TokenKind::Name) {
                previous = self.add_bigram(previous, first);
            }
            self.add_word(&word, &terms, kind, is_stop_word);
        }
    }

    /// Removes the parts of names such as `GitLab` that tools mention as one word: the name counts once, not three times.
    /// Identifiers such as `readFile` keep their parts, which are words of their own.
    fn merge_parts_of_names(&self, sentence: &str, tokens: &mut Vec<QueryToken>) {
        let words = sentence.split(|letter: char| !letter.is_alphanumeric());
        let names: Vec<String> =
            words.filter(|word| word.starts_with(char::is_uppercase)).map(str::to_lowercase).collect();
        let mut at = 0;
        while let Some(offset) = tokens
            .get(at..)
            .and_then(|rest| rest.iter().position(|(.., kind)| *kind == TokenKind::Identifier))
        {
            at += offset;
            let is_name = tokens.get(at).is_some_and(|(word, terms, _)| {
                names.contains(word) && terms.iter().any(|term| self.index.vocabulary.id(term).is_some())
            });
            let parts = tokens.get(..at).map_or(0, |before| {
                before.iter().rev().take_while(|(.., kind)| *kind == TokenKind::Part).count()
            });
            if is_name {
                if let Some((.., kind)) = tokens.get_mut(at) {
                    *kind = TokenKind::Name;
                }
                tokens.drain(at - parts..at);
                at -= parts;
            }
            at += 1;
        }
    }

    /// Adds the bigram of two terms; returns id and hash of the second, or `None` if it is not indexed.
    fn add_bigram(&mut self, previous: Option<(TermId, u32)>, term: &str) -> Option<(TermId, u32)> {
        let current = (self.index.vocabulary.id(term)?, term_hash(term));
        if let Some((previous_id, previous_hash)) = previous {
            let hash = bigram_hash(previous_hash, current.1);
            self.query.bigrams.push(QueryBigram { hash, terms: [previous_id, current.0] });
        }
        Some(current)
    }

    fn add_word(&mut self, word: &str, terms: &[String], kind: TokenKind, is_stop_word: bool) {
        let Some(first) = terms.first() else { return };
        if let Some(term) = self.positions.get(first).and_then(|at| self.query.terms.get_mut(*at)) {
            term.weight += REPETITION_WEIGHT / (1.0 + term.weight);
            return;
        }
        let exact = terms.iter().filter_map(|term| self.weighted(term));
        let mut expansions: Vec<Expansion> =
            exact.map(|term| expansion(vec![term], MatchKind::Exact, true)).collect();
        let is_indexed = !expansions.is_empty();
        if !is_stop_word {
            let related = self.index.vocabulary.related_terms(first);
            expansions.extend(
                related
                    .map(|term| expansion(vec![self.index.weighted(term)], MatchKind::SameRoot, is_indexed)),
            );
            self.expand(&mut expansions, synonyms(first), MatchKind::Synonym, is_indexed);
        }
        let weight = match kind {
            TokenKind::Name => NAME_WEIGHT,
            _ if word.bytes().any(|byte| byte.is_ascii_digit()) => NUMBER_WEIGHT,
            _ => 1.0,
        };
        let Some(term) = self.new_term(first, word, expansions, weight) else { return };
        if is_stop_word {
            self.positions.insert(term.key.clone(), usize::MAX);
            self.stop_words.push(term);
        } else {
            self.push_term(term);
        }
    }

    /// An indexed term with its weight.
    fn weighted(&self, term: &str) -> Option<WeightedTerm> {
        self.index.vocabulary.id(term).map(|id| self.index.weighted(id))
    }

    /// Adds to `expansions` the phrases all of whose terms are indexed.
    fn expand(
        &self,
        expansions: &mut Vec<Expansion>,
        phrases: &[Vec<String>],
        kind: MatchKind,
        is_indexed: bool,
    ) {
        for phrase in phrases {
            let terms: Option<Vec<WeightedTerm>> = phrase.iter().map(|term| self.weighted(term)).collect();
            expansions.extend(
                terms.filter(|terms| !terms.is_empty()).map(|terms| expansion(terms, kind, is_indexed)),
            );
        }
    }

    fn add_term(&mut self, key: &str, word: &str, expansions: Vec<Expansion>, weight: f32) {
        if let Some(term) = self.new_term(key, word, expansions, weight) {
            self.push_term(term);
        }
    }

    /// A term of the current sentence; `None` if there are no expansions, the key is already in use, or the query is full.
    fn new_term(&self, key: &str, word: &str, expansions: Vec<Expansion>, weight: f32) -> Option<QueryTerm> {
        let is_full = self.query.terms.len() >= MAX_QUERY_WORDS;
        if expansions.is_empty() || is_full || self.positions.contains_key(key) {
            return None;
        }
        let sentence = self.query.sentence_count;
        Some(QueryTerm { key: key.to_owned(), word: word.to_owned(), expansions, weight, sentence })
    }

    fn push_term(&mut self, term: QueryTerm) {
        self.positions.insert(term.key.clone(), self.query.terms.len());
        self.query.terms.push(term);
    }

    fn add_values(&mut self, sentence: &str) {
        for word in sentence.split_whitespace() {
            let Some(names) = value_type_names(word) else { continue };
            let terms = names.iter().filter_map(|name| self.weighted(&stem_english(name)));
            let expansions = terms.map(|term| expansion(vec![term], MatchKind::Value, true)).collect();
            let key = format!("value {}", names.first().copied().unwrap_or_default());
            self.add_term(&key, word, expansions, VALUE_WEIGHT);
        }
    }

    /// Adds compounds (the term `workbook` for the words `work book`) and phrases with synonyms.
    fn add_phrases(&mut self, sentence: &str) {
        for run in word_runs(sentence) {
            for pair in run.windows(2) {
                let [first, second] = pair else { continue };
                if is_stop_term(&stem_english(first)) || is_stop_term(&stem_english(second)) {
                    continue;
                }
                let compound = stem_english(&format!("{first}{second}"));
                let term = self.weighted(&compound);
                let expansions = term.map(|term| expansion(vec![term], MatchKind::Compound, true));
                let word = format!("{first} {second}");
                self.add_term(&compound, &word, expansions.into_iter().collect(), 1.0);
            }
            let terms: Vec<String> = run.iter().map(|word| stem_english(word)).collect();
            for length in 2..=MAX_PHRASE_WORDS {
                for phrase in terms.windows(length) {
                    let key = phrase.join(" ");
                    let mut expansions = Vec::new();
                    self.expand(&mut expansions, synonyms(&key), MatchKind::Synonym, false);
                    self.add_term(&key, &key, expansions, 1.0);
                }
            }
        }
    }

    fn add_translations(&mut self, text: &str) {
        for translation in translate(text) {
            let Some(word) = text.get(translation.range.clone()) else { continue };
            let glosses: Vec<Vec<String>> =
                translation.glosses.iter().map(|gloss| gloss_terms(gloss)).collect();
            let mut expansions = Vec::new();
            self.expand(&mut expansions, &glosses, MatchKind::Translation, false);
            self.add_term(&format!("gloss {word}"), word, expansions, 1.0);
        }
    }

    /// Adds the concepts that the request mentions. Further mentions of a concept count less.
    fn add_concepts(&mut self, text: &str) {
        let mut seen: HashMap<&'static str, i32> = HashMap::new();
        for mention in concept_mentions(text) {
            let weight = match mention.kind {
                ConceptKind::Subject => SUBJECT_WEIGHT,
                ConceptKind::Action => ACTION_WEIGHT,
            };
            let mut expansions = Vec::new();
            for (concept, strength) in &mention.concepts {
                let Some(term) = self.weighted(&concept.term) else { continue };
                let times = seen.entry(concept.term.as_str()).or_default();
                let weight = strength * REPEATED_CONCEPT_WEIGHT.powi(*times);
                *times += 1;
                expansions.push(Expansion { terms: vec![term], weight, kind: MatchKind::Concept });
            }
            let key = format!("concept {:?} {}", mention.kind, mention.word);
            if let Some(mut term) = self.new_term(&key, &mention.word, expansions, weight) {
                // Like translations, mentions are not assigned to a sentence.
                term.sentence = self.query.sentence_count;
                self.query.concepts.push(term);
            }
        }
    }

    /// Adds the identifiers of the request that are names of tools; the whole request counts as one too.
    fn add_tool_names(&mut self, text: &str) {
        let whole_request = text.trim();
        let is_edge = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let words = text.split_whitespace().map(|word| word.trim_matches(is_edge));
        let identifiers = words.filter(|word| word.contains('_') || is_camel_case(word));
        for name in identifiers.chain([whole_request]) {
            let name = name.to_lowercase();
            if !self.query.tool_names.contains(&name) && !self.index.documents_named(&name).is_empty() {
                self.query.tool_names.push(name);
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

fn gloss_terms(gloss: &[String]) -> Vec<String> {
    let mut terms = Vec::new();
    for part in gloss {
        tokenize(part, |token, kind| {
            if kind != TokenKind::Identifier {
                terms.push(stem_english(token));
            }
        });
    }
    terms
}

/// Creates an expansion with its weight. `is_indexed`: whether some tool has the word itself; it changes only the weights
/// of synonyms and words of the same root.
fn expansion(terms: Vec<WeightedTerm>, kind: MatchKind, is_indexed: bool) -> Expansion {
    let weight = match (kind, is_indexed) {
        (MatchKind::Exact | MatchKind::Value | MatchKind::Concept, _) => 1.0,
        (MatchKind::Compound, _) => 0.96,
        (MatchKind::SameRoot, true) => 0.26,
        (MatchKind::SameRoot, false) => 0.2,
        (MatchKind::Synonym, true) => 0.34,
        (MatchKind::Synonym, false) => 0.55,
        (MatchKind::Translation, _) => 0.7,
    };
    Expansion { terms, weight, kind }
}

/// Splits a text into sentences; a dot ends one only before white space.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        let is_end = match letter {
            '?' | '!' | ';' | '\n' | '。' | '？' | '！' | '；' => true,
            '.' => text.get(end..).and_then(|rest| rest.chars().next()).is_none_or(char::is_whitespace),
            _ => false,
        };
        if is_end {
            sentences.extend(text.get(start..end));
            start = end;
        }
    }
    sentences.extend(text.get(start..).filter(|rest| !rest.trim().is_empty()));
    sentences
}

/// Runs of lowercase words with nothing but white space, hyphens, underscores and apostrophes in between.
fn word_runs(text: &str) -> Vec<Vec<String>> {
    let mut runs = vec![Vec::new()];
    let mut word = String::new();
    for letter in text.chars().chain([' ']) {
        if letter.is_alphanumeric() && !is_cjk(letter) {
            word.extend(letter.to_lowercase());
            continue;
        }
        // Overlong words are data and end a run like punctuation.
        if word.len() > MAX_TOKEN_BYTES {
            word.clear();
            runs.push(Vec::new());
        }
        if !word.is_empty()
            && let Some(run) = runs.last_mut()
        {
            run.push(std::mem::take(&mut word));
        }
        if !(letter.is_whitespace() || matches!(letter, '-' | '_' | '\'')) {
            runs.push(Vec::new());
        }
    }
    runs
}
