//! Turns tool definitions into terms with impacts, by the BM25F formula.

use crate::{
    analysis::{
        bigram::{bigram_hash, term_hash},
        stemmer::{TextStemmer, is_stop_term},
        tokenizer::{TokenKind, tokenize},
    },
    concept::for_each_tool_concept,
    document::{SourceText, ToolText},
    glossary::translate,
    index::{
        field::Field,
        vocabulary::{Impact, IndexedWord, TermId, Vocabulary},
    },
};

/// BM25's `k1`: how soon further occurrences of a term stop counting.
const SATURATION: f32 = 1.2;
/// Impact of every term that occurs at all.
const BASE_IMPACT: f32 = 0.21;
/// Glosses of a translated word that are indexed.
const MAX_GLOSSES: usize = 2;

/// The terms of a source or tool: every occurrence with its field, the number of tokens per field, and the hashes of
/// bigrams.
#[derive(Debug, Clone, Default)]
pub(crate) struct TermOccurrences {
    occurrences: Vec<(TermId, Field)>,
    field_lengths: [usize; Field::ALL.len()],
    bigrams: Vec<u32>,
}

/// The terms of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolTerms {
    /// By ascending id.
    pub(crate) impacts: Box<[(TermId, Impact)]>,
    /// The hashes of its bigrams, ascending.
    bigrams: Box<[u32]>,
    /// The terms of the name, without stop words: the more of them a request mentions, the less concepts count.
    pub(crate) name_terms: Box<[TermId]>,
}

impl ToolTerms {
    pub(crate) fn ids(&self) -> impl Iterator<Item = TermId> {
        self.impacts.iter().map(|(id, _)| *id)
    }

    /// Impact of a term on the tool.
    pub(crate) fn impact(&self, term: TermId) -> Option<f32> {
        let at = self.impacts.binary_search_by_key(&term, |(id, _)| *id).ok()?;
        self.impacts.get(at).map(|(_, impact)| impact.value())
    }

    pub(crate) fn has_bigram(&self, hash: u32) -> bool {
        self.bigrams.binary_search(&hash).is_ok()
    }
}

/// Analyzes the text of a source, which all its tools share.
pub(crate) fn analyze_source(source: &SourceText, vocabulary: &mut Vocabulary) -> TermOccurrences {
    let mut occurrences = TermOccurrences::default();
    occurrences.add(Field::Source, &source.id, vocabulary);
    occurrences.add(Field::SourceDescription, &source.description, vocabulary);
    occurrences.add_translation(&source.description, vocabulary);
    occurrences.add_concepts(&source.id, true, vocabulary);
    occurrences
}

impl TermOccurrences {
    /// Analyzes a tool of the source whose occurrences these are.
    pub(crate) fn analyze_tool(&self, tool: &ToolText, vocabulary: &mut Vocabulary) -> ToolTerms {
        let mut occurrences = self.clone();
        occurrences.add(Field::Name, &tool.name, vocabulary);
        if tool.title != tool.name {
            occurrences.add(Field::Name, &tool.title, vocabulary);
        }
        occurrences.add(Field::Description, &tool.description, vocabulary);
        for param in &tool.params {
            occurrences.add(Field::ParamName, &param.name, vocabulary);
            occurrences.add(Field::ParamDescription, &param.description, vocabulary);
        }
        for capability in &tool.capabilities {
            occurrences.add(Field::Capability, capability, vocabulary);
        }
        occurrences.add_translation(&tool.description, vocabulary);
        occurrences.add_concepts(&tool.name, false, vocabulary);
        ToolTerms { name_terms: name_terms(&tool.name, vocabulary), ..occurrences.finish() }
    }

    fn add(&mut self, field: Field, text: &str, vocabulary: &mut Vocabulary) {
        if text.is_empty() {
            return;
        }
        let stemmer = TextStemmer::for_text(text);
        let max_tokens = field.weight().max_tokens;
        let has_bigrams = matches!(field, Field::Name | Field::Description | Field::Source);
        let mut previous: Option<u32> = None;
        tokenize(text, |token, kind| {
            if self.field_length(field) >= max_tokens {
                return;
            }
            if let Some(length) = self.field_lengths.get_mut(field as usize) {
                *length += 1;
            }
            let mut add_term = |term: TermId, hash: Option<u32>| {
                if let (true, TokenKind::Word | TokenKind::Part, Some(hash)) = (has_bigrams, kind, hash) {
                    self.bigrams.extend(previous.map(|previous| bigram_hash(previous, hash)));
                    previous = Some(hash);
                }
                self.occurrences.push((term, field));
            };
            let IndexedWord { term, hash } = vocabulary.intern_word(token);
            add_term(term, hash);
            stemmer.with_other_term(token, |term| {
                add_term(vocabulary.intern(term), (!is_stop_term(term)).then(|| term_hash(term)));
            });
        });
    }

    /// Adds the English translation of a Chinese text.
    fn add_translation(&mut self, text: &str, vocabulary: &mut Vocabulary) {
        for word in translate(text) {
            for gloss in word.glosses.iter().take(MAX_GLOSSES) {
                self.add(Field::Translation, &gloss.join(" "), vocabulary);
            }
        }
    }

    /// Adds the concepts that the name of a source or tool mentions.
    fn add_concepts(&mut self, name: &str, is_source: bool, vocabulary: &mut Vocabulary) {
        for_each_tool_concept(name, is_source, |term| {
            self.occurrences.push((vocabulary.intern(term), Field::Concept));
        });
    }

    fn field_length(&self, field: Field) -> usize {
        self.field_lengths.get(field as usize).copied().unwrap_or(usize::MAX)
    }

    /// Sums the weights of the occurrences of every term over all fields.
    fn finish(mut self) -> ToolTerms {
        self.occurrences.sort_unstable();
        let field_weights = Field::ALL.map(|field| self.occurrence_weight(field));
        let mut impacts = Vec::new();
        for of_term in self.occurrences.chunk_by(|(one, _), (other, _)| one == other) {
            let weights = of_term.iter().filter_map(|(_, field)| field_weights.get(*field as usize));
            let weight: f32 = weights.sum();
            let Some((term, _)) = of_term.first() else { continue };
            let impact = weight * (SATURATION + 1.0) / (SATURATION + weight) + BASE_IMPACT;
            impacts.push((*term, Impact::new(impact)));
        }
        self.bigrams.sort_unstable();
        self.bigrams.dedup();
        ToolTerms { impacts: impacts.into(), bigrams: self.bigrams.into(), name_terms: Box::default() }
    }

    /// Weight of one occurrence in a field, normalized by the length of the field.
    #[expect(clippy::cast_precision_loss, reason = "field lengths are bounded by `max_tokens`")]
    fn occurrence_weight(&self, field: Field) -> f32 {
        let weight = field.weight();
        let length = self.field_length(field) as f32 / weight.typical_tokens;
        weight.boost / (1.0 - weight.length_normalization + weight.length_normalization * length)
    }
}

/// The terms of a name, without stop words.
fn name_terms(name: &str, vocabulary: &mut Vocabulary) -> Box<[TermId]> {
    let mut terms = Vec::new();
    tokenize(name, |token, kind| {
        let word = vocabulary.intern_word(token);
        if kind != TokenKind::Identifier && word.hash.is_some() {
            terms.push(word.term);
        }
    });
    terms.into()
}
