//! Turns the words of a tool's definition into terms, and says how much each says about the tool.

use super::{
    document::{ServerText, ToolText},
    field::Field,
    lexicon::Lexicon,
    stem::{TextStemmer, is_stop_term},
    terms::{Impact, TermId, Terms},
    words::{Cut, is_unspaced, words},
};

/// How soon more occurrences of a term stop counting.
const SATURATION: f32 = 1.2;
/// What a term counts at least wherever it stands.
const FLOOR: f32 = 0.21;

/// The terms of one text so far: each occurrence with its field, and how many words each field has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Occurrences {
    all: Vec<(TermId, Field)>,
    lengths: [usize; Field::ALL.len()],
    pairs: Vec<u32>,
}

/// A tool's terms in the order of their numbers, and its neighbouring words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Analyzed {
    pub(crate) terms: Vec<(TermId, Impact)>,
    pub(crate) pairs: Vec<u32>,
}

/// The words of a server, which all its tools share.
pub(crate) fn analyze(server: &ServerText, lexicon: Option<&dyn Lexicon>, terms: &mut Terms) -> Occurrences {
    let mut found = Occurrences::default();
    found.add(Field::Server, &server.id, terms);
    found.add(Field::ServerDescription, &server.description, terms);
    found.add_translation(&server.description, lexicon, terms);
    found
}

impl Occurrences {
    /// The server's words and those of one of its tools.
    pub(crate) fn with_tool(
        &self,
        tool: &ToolText,
        lexicon: Option<&dyn Lexicon>,
        terms: &mut Terms,
    ) -> Analyzed {
        let mut found = self.clone();
        found.add(Field::Name, &tool.name, terms);
        if tool.title != tool.name {
            found.add(Field::Name, &tool.title, terms);
        }
        found.add(Field::Description, &tool.description, terms);
        for param in &tool.params {
            found.add(Field::ParamName, &param.name, terms);
            found.add(Field::ParamDescription, &param.description, terms);
        }
        for capability in &tool.capabilities {
            found.add(Field::Capability, capability, terms);
        }
        found.add_translation(&tool.description, lexicon, terms);
        found.analyzed()
    }

    fn add(&mut self, field: Field, text: &str, terms: &mut Terms) {
        if text.is_empty() {
            return;
        }
        let stemmer = TextStemmer::of(text);
        let most = field.weight().most;
        let pairs_wanted = matches!(field, Field::Name | Field::Description | Field::Server);
        let mut before: Option<u32> = None;
        words(text, |word, cut| {
            if self.length(field) >= most {
                return;
            }
            self.lengthen(field);
            stemmer.terms(word, |term| {
                if pairs_wanted && matches!(cut, Cut::Word | Cut::Part) && !is_stop_term(term) {
                    let half = half_pair(term);
                    self.pairs.extend(before.map(|before| pair(before, half)));
                    before = Some(half);
                }
                self.all.push((terms.intern(term), field));
            });
        });
    }

    /// English words for a text in another language.
    fn add_translation(&mut self, text: &str, lexicon: Option<&dyn Lexicon>, terms: &mut Terms) {
        let Some(lexicon) = lexicon else { return };
        if !text.chars().any(is_unspaced) {
            return;
        }
        for meaning in lexicon.meanings(text) {
            for gloss in meaning.glosses.iter().take(2) {
                self.add(Field::Translation, &gloss.join(" "), terms);
            }
        }
    }

    fn length(&self, field: Field) -> usize {
        self.lengths.get(field as usize).copied().unwrap_or(usize::MAX)
    }

    fn lengthen(&mut self, field: Field) {
        if let Some(length) = self.lengths.get_mut(field as usize) {
            *length += 1;
        }
    }

    /// Adds up what every term says, wherever it stands.
    fn analyzed(mut self) -> Analyzed {
        self.all.sort_unstable();
        let per_occurrence = Field::ALL.map(|field| self.per_occurrence(field));
        let mut terms = Vec::new();
        for same in self.all.chunk_by(|(one, _), (other, _)| one == other) {
            let counts = same.iter().filter_map(|(_, field)| per_occurrence.get(*field as usize));
            let weight: f32 = counts.sum();
            let Some((term, _)) = same.first() else { continue };
            let impact = weight * (SATURATION + 1.0) / (SATURATION + weight) + FLOOR;
            terms.push((*term, Impact::new(impact)));
        }
        self.pairs.sort_unstable();
        self.pairs.dedup();
        Analyzed { terms, pairs: self.pairs }
    }

    /// What one occurrence in a field counts, given how many words stand there.
    #[expect(clippy::cast_precision_loss, reason = "no field has so many words")]
    fn per_occurrence(&self, field: Field) -> f32 {
        let weight = field.weight();
        let length = self.length(field) as f32 / weight.usual;
        weight.boost / (1.0 - weight.length + weight.length * length)
    }
}

/// The half of a pair that one term is.
pub(crate) fn half_pair(term: &str) -> u32 {
    term.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Two terms that stand together.
pub(crate) fn pair(before: u32, after: u32) -> u32 {
    before.rotate_left(5).wrapping_mul(0x9e37_79b1) ^ after
}
