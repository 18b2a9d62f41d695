//! [`Postings`]: the documents in which a term occurs, in about three bytes each.

use crate::{accumulator::DocumentId, index::vocabulary::Impact};

/// Postings of a block. A change rewrites whole blocks.
const MAX_BLOCK_POSTINGS: usize = 128;

/// The documents in which a term occurs, by ascending id, each with the impact of the term.
#[derive(Debug, Clone, Default)]
pub(crate) enum Postings {
    #[default]
    None,
    /// Many terms occur in one document only.
    One(DocumentId, Impact),
    Many(Box<PostingList>),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PostingList {
    /// Full blocks, or those that postings were removed from; none is empty.
    blocks: Vec<Block<Box<[u8]>>>,
    /// The block that grows.
    last: Block<Vec<u8>>,
    count: usize,
    max_impact: Impact,
}

/// Some postings: of each, the distance of its document from the previous one (of the first, its id) as a number of seven bits per
/// byte, and the two bytes of the impact.
#[derive(Debug, Clone, Default)]
struct Block<Bytes> {
    last_document: DocumentId,
    count: usize,
    bytes: Bytes,
}

impl Postings {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(..) => 1,
            Self::Many(list) => list.count,
        }
    }

    /// No impact is higher. It may be higher than that of every document if some were removed.
    pub(crate) fn max_impact(&self) -> Impact {
        match self {
            Self::None => Impact::default(),
            Self::One(_, impact) => *impact,
            Self::Many(list) => list.max_impact,
        }
    }

    pub(crate) fn for_each(&self, mut each: impl FnMut(DocumentId, Impact)) {
        match self {
            Self::None => {}
            Self::One(document, impact) => each(*document, *impact),
            Self::Many(list) => {
                list.blocks.iter().for_each(|block| decode(&block.bytes, &mut each));
                decode(&list.last.bytes, &mut each);
            }
        }
    }

    /// Adds a document with a higher id than all others.
    pub(crate) fn push(&mut self, document: DocumentId, impact: Impact) {
        match self {
            Self::None => *self = Self::One(document, impact),
            Self::One(first, first_impact) => {
                let mut list = PostingList::default();
                list.push(*first, *first_impact);
                list.push(document, impact);
                *self = Self::Many(Box::new(list));
            }
            Self::Many(list) => list.push(document, impact),
        }
    }

    /// Removes the documents from `first` to `end` (exclusive).
    pub(crate) fn remove(&mut self, first: DocumentId, end: DocumentId) {
        match self {
            Self::One(document, _) if (first..end).contains(document) => *self = Self::None,
            Self::None | Self::One(..) => {}
            Self::Many(list) => {
                list.remove(first, end);
                if list.count == 0 {
                    *self = Self::None;
                }
            }
        }
    }

    pub(crate) fn renumber_documents(&mut self, new_id: impl Fn(DocumentId) -> DocumentId) {
        let mut renumbered = Self::None;
        self.for_each(|document, impact| renumbered.push(new_id(document), impact));
        *self = renumbered;
    }
}

impl PostingList {
    fn push(&mut self, document: DocumentId, impact: Impact) {
        if self.last.count >= MAX_BLOCK_POSTINGS {
            let Block { last_document, count, bytes } = std::mem::take(&mut self.last);
            self.blocks.push(Block { last_document, count, bytes: bytes.into() });
        }
        self.last.push(document, impact);
        self.count += 1;
        self.max_impact = self.max_impact.max(impact);
    }

    fn remove(&mut self, first: DocumentId, end: DocumentId) {
        let from = self.blocks.partition_point(|block| block.last_document < first);
        let to = self.blocks.partition_point(|block| block.last_document < end);
        // The block after those that end within the range may begin within it.
        for block in self.blocks.iter_mut().take(to + 1).skip(from) {
            let left = without(&block.bytes, first, end);
            self.count -= block.count - left.count;
            *block = Block { last_document: left.last_document, count: left.count, bytes: left.bytes.into() };
        }
        self.blocks.retain(|block| block.count > 0);
        let left = without(&self.last.bytes, first, end);
        self.count -= self.last.count - left.count;
        self.last = left;
    }
}

impl Block<Vec<u8>> {
    fn push(&mut self, document: DocumentId, impact: Impact) {
        let mut distance = if self.count == 0 { document } else { document.wrapping_sub(self.last_document) };
        while distance >= 0x80 {
            self.bytes.push(low_bits(distance) | 0x80);
            distance >>= 7;
        }
        self.bytes.push(low_bits(distance));
        self.bytes.extend_from_slice(&impact.to_bytes());
        (self.last_document, self.count) = (document, self.count + 1);
    }
}

/// The lowest seven bits.
fn low_bits(number: u32) -> u8 {
    (number & 0x7f) as u8
}

/// The postings of a block except those from `first` to `end` (exclusive).
fn without(bytes: &[u8], first: DocumentId, end: DocumentId) -> Block<Vec<u8>> {
    let mut left: Block<Vec<u8>> = Block::default();
    decode(bytes, &mut |document, impact| {
        if !(first..end).contains(&document) {
            left.push(document, impact);
        }
    });
    left
}

fn decode(mut bytes: &[u8], each: &mut impl FnMut(DocumentId, Impact)) {
    let mut document: DocumentId = 0;
    loop {
        let (mut distance, mut shift) = (0, 0);
        loop {
            let Some((byte, rest)) = bytes.split_first() else { return };
            bytes = rest;
            distance |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
        }
        let Some((impact, rest)) = bytes.split_first_chunk() else { return };
        bytes = rest;
        document = document.wrapping_add(distance);
        each(document, Impact::from_bytes(*impact));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn all(postings: &Postings) -> Vec<(DocumentId, Impact)> {
        let mut all = Vec::new();
        postings.for_each(|document, impact| all.push((document, impact)));
        all
    }

    proptest! {
        #[test]
        fn postings_are_a_sorted_list(
            steps in proptest::collection::vec((1..400_000_u32, any::<u16>()), 0..600),
            removed in proptest::collection::vec((0..1200_u32, 0..400_u32), 0..4),
        ) {
            let (mut postings, mut model, mut document) = (Postings::default(), BTreeMap::new(), 0);
            for (step, impact) in steps {
                document += step;
                let impact = Impact::from_bytes(impact.to_le_bytes());
                postings.push(document, impact);
                model.insert(document, impact);
            }
            for (start, length) in removed {
                let first = document / 1000 * start;
                let end = first + document / 1000 * length;
                postings.remove(first, end);
                model.retain(|document, _| !(first..end).contains(document));
            }
            prop_assert_eq!(all(&postings), model.clone().into_iter().collect::<Vec<_>>());
            prop_assert_eq!(postings.len(), model.len());
            prop_assert!(model.values().all(|impact| *impact <= postings.max_impact()));
            postings.push(document + 1, Impact::default());
            let numbers: BTreeMap<u32, u32> = model.keys().copied().chain([document + 1]).zip(0..).collect();
            postings.renumber_documents(|old| numbers[&old]);
            prop_assert_eq!(postings.len(), numbers.len());
            prop_assert!(all(&postings).iter().map(|(document, _)| *document).eq(0..u32::try_from(numbers.len()).unwrap()));
        }
    }
}
