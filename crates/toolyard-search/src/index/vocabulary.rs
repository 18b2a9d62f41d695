//! The vocabulary: every term with its postings.

use std::{collections::HashMap, ops::Range, sync::Arc};

use crate::{
    accumulator::DocumentId,
    analysis::{
        bigram::term_hash,
        noise::noise_penalty,
        stemmer::{is_stop_term, stem_english},
    },
    concept::is_concept_term,
};

/// The id of a term.
pub(crate) type TermId = u32;

/// An impact of 1.0 is stored as this number.
const IMPACT_STEPS: f32 = 8192.0;
/// Words whose terms are cached, which saves stemming them again. A full cache is emptied, so that it cannot grow without limit.
const MAX_CACHED_WORDS: usize = 100_000;
/// Terms that share a prefix of this many bytes may be related.
const RELATED_PREFIX_BYTES: usize = 4;

/// How much a term says about a document, independent of the rest of the catalogue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Impact(u16);

impl Impact {
    pub(crate) fn new(value: f32) -> Self {
        let steps = (value * IMPACT_STEPS).round().clamp(0.0, f32::from(u16::MAX));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to the range of u16"
        )]
        Self(steps as u16)
    }

    pub(crate) fn value(self) -> f32 {
        f32::from(self.0) / IMPACT_STEPS
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) text: Arc<str>,
    /// The documents in which it occurs, ascending, each with its impact.
    pub(crate) postings: Vec<(DocumentId, Impact)>,
    /// See [`noise_penalty`]; never above 0.
    pub(crate) noise_penalty: f32,
    /// Whether it is the term of a concept, not of a word.
    pub(crate) is_concept: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Vocabulary {
    ids: HashMap<Arc<str>, TermId>,
    terms: Vec<Term>,
    terms_by_prefix: HashMap<[u8; RELATED_PREFIX_BYTES], Vec<TermId>>,
    /// Words that were indexed, because most words of a catalogue are in many tools.
    words: HashMap<Box<str>, IndexedWord>,
}

/// An English word in the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexedWord {
    /// The term of its stem.
    pub(crate) term: TermId,
    /// The hash of that term for bigrams; none for stop words.
    pub(crate) hash: Option<u32>,
}

impl Vocabulary {
    /// The id of a term; assigns one to a new term.
    pub(crate) fn intern(&mut self, text: &str) -> TermId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        // Memory runs out before 4 billion terms do.
        let id = TermId::try_from(self.terms.len()).unwrap_or(TermId::MAX);
        let text: Arc<str> = text.into();
        if let Some(related_prefix) = related_prefix(&text) {
            self.terms_by_prefix.entry(related_prefix).or_default().push(id);
        }
        self.terms.push(Term {
            text: Arc::clone(&text),
            postings: Vec::new(),
            noise_penalty: noise_penalty(&text),
            is_concept: is_concept_term(&text),
        });
        self.ids.insert(text, id);
        id
    }

    /// The term of a lowercase English word; like [`Self::intern`] of its stem.
    pub(crate) fn intern_word(&mut self, word: &str) -> IndexedWord {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let stem = stem_english(word);
        let hash = (!is_stop_term(&stem)).then(|| term_hash(&stem));
        let indexed = IndexedWord { term: self.intern(&stem), hash };
        if self.words.len() >= MAX_CACHED_WORDS {
            self.words.clear();
        }
        self.words.insert(word.into(), indexed);
        indexed
    }

    /// The id of a term that occurs in some document.
    pub(crate) fn id(&self, text: &str) -> Option<TermId> {
        let id = *self.ids.get(text)?;
        self.get(id).filter(|term| !term.postings.is_empty()).map(|_| id)
    }

    pub(crate) fn get(&self, id: TermId) -> Option<&Term> {
        self.terms.get(usize::try_from(id).ok()?)
    }

    fn get_mut(&mut self, id: TermId) -> Option<&mut Term> {
        self.terms.get_mut(usize::try_from(id).ok()?)
    }

    /// Adds a document with a higher id than all others.
    pub(crate) fn push_postings(&mut self, document: DocumentId, impacts: &[(TermId, Impact)]) {
        for (id, impact) in impacts {
            if let Some(term) = self.get_mut(*id) {
                term.postings.push((document, *impact));
            }
        }
    }

    /// Removes a range of documents from the given terms. Moves the postings of all later documents of these terms.
    pub(crate) fn remove_postings(&mut self, ids: &[TermId], documents: &Range<DocumentId>) {
        for id in ids {
            let Some(term) = self.get_mut(*id) else { continue };
            let first = term.postings.partition_point(|(document, _)| *document < documents.start);
            let end = term.postings.partition_point(|(document, _)| *document < documents.end);
            term.postings.drain(first..end);
        }
    }

    pub(crate) fn clear_postings(&mut self) {
        self.terms.iter_mut().for_each(|term| term.postings.clear());
    }

    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }

    /// Terms of the same root that have different stems, such as `analysi` and `analyz`.
    pub(crate) fn related_terms(&self, text: &str) -> impl Iterator<Item = TermId> {
        let same_prefix = related_prefix(text)
            .and_then(|related_prefix| self.terms_by_prefix.get(&related_prefix))
            .map(Vec::as_slice);
        let is_related = |id: &TermId| {
            self.get(*id).is_some_and(|term| !term.postings.is_empty() && are_related(text, &term.text))
        };
        same_prefix.unwrap_or_default().iter().copied().filter(is_related)
    }
}

/// The prefix under which related terms are looked up; `None` for short and non-ASCII words.
fn related_prefix(text: &str) -> Option<[u8; RELATED_PREFIX_BYTES]> {
    if !text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    text.as_bytes().first_chunk().copied()
}

/// Whether two different terms are likely of one root: their common prefix has at least five bytes or is the shorter term,
/// lacks at most two bytes of the shorter and four of the longer term, and is at least 60 % of the longer one.
fn are_related(one: &str, other: &str) -> bool {
    if one == other || one.len() <= RELATED_PREFIX_BYTES || other.len() < RELATED_PREFIX_BYTES {
        return false;
    }
    let shared = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let (shorter, longer) = (one.len().min(other.len()), one.len().max(other.len()));
    shared >= shorter.min(5) && shared + 2 >= shorter && longer - shared <= 4 && shared * 10 >= longer * 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_with_a_long_common_prefix_are_related() {
        assert!(are_related("analysi", "analyz"));
        assert!(are_related("summari", "summar"));
        assert!(!are_related("contact", "contract"));
        assert!(!are_related("inter", "internationalis"));
        assert!(!are_related("file", "filer"));
    }

    #[test]
    fn removed_documents_leave_the_postings() {
        let mut terms = Vocabulary::default();
        let id = terms.intern("deploy");
        (0..6).for_each(|document| terms.push_postings(document, &[(id, Impact::new(1.5))]));
        terms.remove_postings(&[id], &(2..4));
        let left: Vec<_> = terms.get(id).unwrap().postings.iter().map(|(document, _)| *document).collect();
        assert_eq!(left, [0, 1, 4, 5]);
        terms.remove_postings(&[id], &(0..9));
        assert_eq!(terms.id("deploy"), None);
    }

    #[test]
    fn impacts_are_stored_precisely() {
        for value in [0.0, 0.01, 1.0, 2.2] {
            assert!((Impact::new(value).value() - value).abs() < 0.0002);
        }
    }
}
