//! [`DocumentTerms`]: the terms and bigrams of a document, in one allocation.

use crate::index::vocabulary::{Impact, TermId};

/// The terms of a document with their impacts, the terms of its name, and the hashes of its bigrams.
///
/// Every tool has one, so it is kept small: an id takes two bytes if it fits, as that of most words does, and all numbers are
/// in one list.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentTerms {
    /// One after the other: ids of two bytes, ids of four bytes, the impacts of both, the terms of the name, and the hashes of
    /// bigrams. Four bytes take two numbers, the lower half first.
    numbers: Box<[u16]>,
    narrow_ids: u16,
    wide_ids: u16,
    name_terms: u16,
}

impl DocumentTerms {
    /// `terms` are sorted by id, `bigrams` by hash. Analysis bounds their numbers far below 65,536.
    pub(crate) fn new(terms: &[(TermId, Impact)], name_terms: &[TermId], bigrams: &[u32]) -> Self {
        let narrow_count = terms.partition_point(|(id, _)| u16::try_from(*id).is_ok());
        let (narrow, wide) = terms.split_at(narrow_count);
        let mut numbers =
            Vec::with_capacity(2 * (terms.len() + name_terms.len() + bigrams.len()) + wide.len());
        numbers.extend(narrow.iter().map(|(id, _)| low_half(*id)));
        numbers.extend(wide.iter().flat_map(|(id, _)| halves(*id)));
        numbers.extend(terms.iter().map(|(_, impact)| impact.to_bits()));
        numbers.extend(name_terms.iter().flat_map(|id| halves(*id)));
        numbers.extend(bigrams.iter().flat_map(|hash| halves(*hash)));
        let count = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        Self {
            numbers: numbers.into(),
            narrow_ids: count(narrow.len()),
            wide_ids: count(wide.len()),
            name_terms: count(name_terms.len()),
        }
    }

    /// The ids of the terms, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TermId> {
        let (narrow, wide) = self.id_slices();
        narrow.iter().map(|id| TermId::from(*id)).chain(wide.iter().copied().map(join))
    }

    pub(crate) fn impact(&self, term: TermId) -> Option<Impact> {
        let (narrow, wide) = self.id_slices();
        let at = match u16::try_from(term) {
            Ok(term) => narrow.binary_search(&term).ok()?,
            Err(_) => narrow.len() + wide.binary_search_by_key(&term, |id| join(*id)).ok()?,
        };
        self.numbers.get(narrow.len() + 2 * wide.len() + at).copied().map(Impact::from_bits)
    }

    /// The terms of the name, in their order: the more of them a request mentions, the less concepts and embeddings count.
    pub(crate) fn name_terms(&self) -> impl Iterator<Item = TermId> {
        self.pairs_after_impacts().iter().take(usize::from(self.name_terms)).copied().map(join)
    }

    pub(crate) fn has_bigram(&self, hash: u32) -> bool {
        let bigrams = self.pairs_after_impacts().get(usize::from(self.name_terms)..).unwrap_or_default();
        bigrams.binary_search_by_key(&hash, |bigram| join(*bigram)).is_ok()
    }

    fn id_slices(&self) -> (&[u16], &[[u16; 2]]) {
        let (narrow, rest) = split(&self.numbers, self.narrow_ids.into());
        let (wide, _) = split(rest, 2 * usize::from(self.wide_ids));
        (narrow, wide.as_chunks().0)
    }

    fn pairs_after_impacts(&self) -> &[[u16; 2]] {
        let (narrow, wide) = (usize::from(self.narrow_ids), usize::from(self.wide_ids));
        split(&self.numbers, 2 * narrow + 3 * wide).1.as_chunks().0
    }
}

fn split(numbers: &[u16], at: usize) -> (&[u16], &[u16]) {
    numbers.split_at_checked(at).unwrap_or((numbers, &[]))
}

fn low_half(number: u32) -> u16 {
    let [low, _] = halves(number);
    low
}

#[expect(clippy::cast_possible_truncation, reason = "the other half is kept too")]
fn halves(number: u32) -> [u16; 2] {
    [number as u16, (number >> 16) as u16]
}

fn join([low, high]: [u16; 2]) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn document_terms_keep_what_they_are_given(
            terms in proptest::collection::btree_map(prop_oneof![0..70_000_u32, any::<u32>()], any::<u16>(), 0..60),
            name_terms in proptest::collection::vec(any::<u32>(), 0..6),
            bigrams in proptest::collection::btree_set(any::<u32>(), 0..40),
            others in proptest::collection::vec(0..70_000_u32, 0..20),
        ) {
            let impacts: BTreeMap<TermId, Impact> =
                terms.into_iter().map(|(id, impact)| (id, Impact::from_bits(impact))).collect();
            let sorted: Vec<(TermId, Impact)> = impacts.iter().map(|(id, impact)| (*id, *impact)).collect();
            let hashes: Vec<u32> = bigrams.iter().copied().collect();
            let document = DocumentTerms::new(&sorted, &name_terms, &hashes);
            prop_assert!(document.ids().eq(impacts.keys().copied()));
            prop_assert!(document.name_terms().eq(name_terms));
            let all_ids: BTreeSet<u32> = impacts.keys().copied().chain(others.clone()).collect();
            prop_assert!(all_ids.iter().all(|id| document.impact(*id) == impacts.get(id).copied()));
            let all_hashes: BTreeSet<u32> = hashes.into_iter().chain(others).collect();
            prop_assert!(all_hashes.iter().all(|hash| document.has_bigram(*hash) == bigrams.contains(hash)));
        }
    }
}
