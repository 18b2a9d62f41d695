//! The vocabulary: every term with the documents it stands in and how much it says about each.

use std::{collections::HashMap, sync::Arc};

use super::noise::noise;

/// The number of a term.
pub(crate) type TermId = u32;
/// The number of a document.
pub(crate) type DocumentId = u32;

/// Impacts are kept as whole numbers of this fraction.
const IMPACT_STEPS: f32 = 8192.0;
/// Terms with the same beginning of this many bytes may be relatives.
const FAMILY: usize = 4;

/// A term's documents, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Postings {
    documents: Vec<DocumentId>,
    impacts: Vec<Impact>,
}

/// How much a term says about a document, whatever the rest of the catalogue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

impl Postings {
    /// All documents with their impacts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (DocumentId, Impact)> {
        self.documents.iter().copied().zip(self.impacts.iter().copied())
    }

    /// In how many documents the term stands.
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    fn push(&mut self, document: DocumentId, impact: Impact) {
        self.documents.push(document);
        self.impacts.push(impact);
    }

    /// Takes out the documents from `first` up to, not including, `end`.
    fn remove(&mut self, first: DocumentId, end: DocumentId) {
        let from = self.documents.partition_point(|document| *document < first);
        let to = self.documents.partition_point(|document| *document < end);
        self.documents.drain(from..to);
        self.impacts.drain(from..to);
    }

    fn renumber(&mut self, new_number: impl Fn(DocumentId) -> DocumentId) {
        for document in &mut self.documents {
            *document = new_number(*document);
        }
        self.documents.shrink_to_fit();
        self.impacts.shrink_to_fit();
    }
}

/// One term.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) text: Arc<str>,
    pub(crate) postings: Postings,
    /// What is taken from its weight because people say it whatever they want; never above 0.
    pub(crate) noise: f32,
}

/// All terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    ids: HashMap<Arc<str>, TermId>,
    terms: Vec<Term>,
    /// Terms by their first letters.
    families: HashMap<[u8; FAMILY], Vec<TermId>>,
}

impl Terms {
    /// The number of a term, which it gets if it has none.
    pub(crate) fn intern(&mut self, text: &str) -> TermId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        // 4 billion different terms do not fit into memory before the numbers run out.
        let id = TermId::try_from(self.terms.len()).unwrap_or(TermId::MAX);
        let text: Arc<str> = text.into();
        if let Some(family) = family(&text) {
            self.families.entry(family).or_default().push(id);
        }
        self.terms.push(Term { text: Arc::clone(&text), postings: Postings::default(), noise: noise(&text) });
        self.ids.insert(text, id);
        id
    }

    /// The number of a term that stands in some document.
    pub(crate) fn id(&self, text: &str) -> Option<TermId> {
        let id = *self.ids.get(text)?;
        self.get(id).filter(|term| term.postings.len() > 0).map(|_| id)
    }

    pub(crate) fn get(&self, id: TermId) -> Option<&Term> {
        self.terms.get(usize::try_from(id).ok()?)
    }

    pub(crate) fn push(&mut self, id: TermId, document: DocumentId, impact: Impact) {
        if let Some(term) = usize::try_from(id).ok().and_then(|id| self.terms.get_mut(id)) {
            term.postings.push(document, impact);
        }
    }

    /// Takes documents out of the given terms.
    pub(crate) fn remove(&mut self, ids: impl Iterator<Item = TermId>, first: DocumentId, end: DocumentId) {
        for id in ids {
            if let Some(term) = usize::try_from(id).ok().and_then(|id| self.terms.get_mut(id)) {
                term.postings.remove(first, end);
            }
        }
    }

    pub(crate) fn renumber(&mut self, new_number: impl Fn(DocumentId) -> DocumentId) {
        for term in &mut self.terms {
            term.postings.renumber(&new_number);
        }
    }

    /// How many different terms there are.
    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }

    /// Terms with the same root, which taking off endings did not bring together: `analysi` and `analyz`.
    pub(crate) fn relatives(&self, text: &str) -> impl Iterator<Item = TermId> {
        let kin = family(text).and_then(|family| self.families.get(&family)).map(Vec::as_slice);
        let known = |id: &TermId| {
            self.get(*id).is_some_and(|term| term.postings.len() > 0 && are_relatives(text, &term.text))
        };
        kin.unwrap_or_default().iter().copied().filter(known)
    }
}

/// The first letters of a word that may have relatives.
fn family(text: &str) -> Option<[u8; FAMILY]> {
    if !text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    text.as_bytes().first_chunk().copied()
}

/// Whether two different terms share so much of their beginning that they are likely of one root.
fn are_relatives(one: &str, other: &str) -> bool {
    if one == other || one.len() <= FAMILY || other.len() < FAMILY {
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
    fn relatives_share_a_root() {
        assert!(are_relatives("analysi", "analyz"));
        assert!(are_relatives("summari", "summar"));
        assert!(!are_relatives("contact", "contract"));
        assert!(!are_relatives("inter", "internationalis"));
        assert!(!are_relatives("file", "filer"));
    }

    #[test]
    fn documents_leave_their_terms() {
        let mut terms = Terms::default();
        let id = terms.intern("deploy");
        for document in 0..6 {
            terms.push(id, document, Impact::new(1.5));
        }
        terms.remove([id].into_iter(), 2, 4);
        let left: Vec<_> = terms.get(id).unwrap().postings.iter().map(|(document, _)| document).collect();
        assert_eq!(left, [0, 1, 4, 5]);
        terms.remove([id].into_iter(), 0, 9);
        assert_eq!(terms.id("deploy"), None);
    }

    #[test]
    fn impacts_keep_their_value() {
        for value in [0.0, 0.01, 1.0, 2.2] {
            assert!((Impact::new(value).value() - value).abs() < 0.0002);
        }
    }
}
