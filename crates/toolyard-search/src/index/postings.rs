//! [`Postings`]: the documents in which a term occurs, in about four bytes each.

use std::ops::Range;

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
    blocks: Vec<Block>,
    /// The postings that are in no block yet.
    last: Vec<(DocumentId, Impact)>,
    count: usize,
    max_impact: Impact,
}

/// Some postings, by ascending document.
#[derive(Debug, Clone)]
struct Block {
    first_document: DocumentId,
    last_document: DocumentId,
    entries: Entries,
}

/// Of each posting, the distance of its document from the previous one (of the first: 0), and the impact. Of fixed width, because
/// numbers of variable width save a byte and take longer to read.
#[derive(Debug, Clone)]
enum Entries {
    Narrow(Box<[(u16, Impact)]>),
    /// For terms that are rare in a large catalogue.
    Wide(Box<[(u32, Impact)]>),
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
                list.blocks.iter().for_each(|block| block.for_each(&mut each));
                list.last.iter().for_each(|(document, impact)| each(*document, *impact));
            }
        }
    }

    /// Reads the postings in ranges of documents, see [`PostingReader::read`].
    pub(crate) fn reader(&self) -> PostingReader<'_> {
        let (blocks, last, one): (&[Block], &[(DocumentId, Impact)], _) = match self {
            Self::None => (&[], &[], None),
            Self::One(document, impact) => (&[], &[], Some((*document, *impact))),
            Self::Many(list) => (&list.blocks, &list.last, None),
        };
        PostingReader { blocks, last, one, entries_read: 0, document: None }
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
        if self.last.len() >= MAX_BLOCK_POSTINGS {
            self.blocks.extend(Block::new(&self.last));
            self.last.clear();
        }
        self.last.push((document, impact));
        self.count += 1;
        self.max_impact = self.max_impact.max(impact);
    }

    fn remove(&mut self, first: DocumentId, end: DocumentId) {
        let from = self.blocks.partition_point(|block| block.last_document < first);
        let to = self.blocks.partition_point(|block| block.last_document < end);
        // The block after those that end within the range may begin within it.
        let affected: Vec<Block> = self.blocks.splice(from..(to + 1).min(self.blocks.len()), []).collect();
        let mut left = Vec::with_capacity(affected.len());
        for block in affected {
            let mut postings = Vec::with_capacity(MAX_BLOCK_POSTINGS);
            block.for_each(&mut |document, impact| postings.push((document, impact)));
            let before = postings.len();
            postings.retain(|(document, _)| !(first..end).contains(document));
            self.count -= before - postings.len();
            left.extend(Block::new(&postings));
        }
        self.blocks.splice(from..from, left);
        let before = self.last.len();
        self.last.retain(|(document, _)| !(first..end).contains(document));
        self.count -= before - self.last.len();
    }
}

impl Block {
    /// None without postings.
    fn new(postings: &[(DocumentId, Impact)]) -> Option<Self> {
        let (first_document, last_document) = (postings.first()?.0, postings.last()?.0);
        let previous = std::iter::once(first_document).chain(postings.iter().map(|(document, _)| *document));
        let distances = postings.iter().zip(previous);
        let wide = distances.map(|((document, impact), previous)| (document - previous, *impact));
        let wide: Vec<(u32, Impact)> = wide.collect();
        let narrow = wide.iter().map(|(distance, impact)| Some((u16::try_from(*distance).ok()?, *impact)));
        let entries = match narrow.collect() {
            Some(narrow) => Entries::Narrow(narrow),
            None => Entries::Wide(wide.into()),
        };
        Some(Self { first_document, last_document, entries })
    }

    fn for_each(&self, each: &mut impl FnMut(DocumentId, Impact)) {
        let mut document = self.first_document;
        match &self.entries {
            Entries::Narrow(entries) => {
                for (distance, impact) in entries {
                    document = document.wrapping_add(u32::from(*distance));
                    each(document, *impact);
                }
            }
            Entries::Wide(entries) => {
                for (distance, impact) in entries {
                    document = document.wrapping_add(*distance);
                    each(document, *impact);
                }
            }
        }
    }
}

/// A position in the postings of a term, which only moves forward.
#[derive(Debug, Clone)]
pub(crate) struct PostingReader<'a> {
    /// The blocks that are not finished.
    blocks: &'a [Block],
    last: &'a [(DocumentId, Impact)],
    one: Option<(DocumentId, Impact)>,
    /// Entries of the first block that were read or skipped.
    entries_read: usize,
    /// The document of the last of these; `None` at the start of a block.
    document: Option<DocumentId>,
}

impl PostingReader<'_> {
    /// Calls `each` with the postings of a range of documents. Every range begins where the one before ended, or later: blocks in
    /// between are skipped unread.
    pub(crate) fn read(&mut self, range: &Range<DocumentId>, mut each: impl FnMut(DocumentId, Impact)) {
        while let Some((block, rest)) = self.blocks.split_first() {
            if block.first_document >= range.end {
                return;
            }
            let is_finished = block.last_document < range.start
                || match &block.entries {
                    Entries::Narrow(entries) => self.read_block(block, entries, range, &mut each),
                    Entries::Wide(entries) => self.read_block(block, entries, range, &mut each),
                };
            if !is_finished {
                return;
            }
            (self.blocks, self.entries_read, self.document) = (rest, 0, None);
        }
        while let Some(((document, impact), rest)) = self.last.split_first() {
            if *document >= range.end {
                return;
            }
            if *document >= range.start {
                each(*document, *impact);
            }
            self.last = rest;
        }
        if let Some((document, impact)) = self.one.filter(|(document, _)| range.contains(document)) {
            each(document, impact);
        }
    }

    /// Whether the block is finished.
    fn read_block<D: Copy + Into<u32>>(
        &mut self,
        block: &Block,
        entries: &[(D, Impact)],
        range: &Range<DocumentId>,
        each: &mut impl FnMut(DocumentId, Impact),
    ) -> bool {
        let mut document = self.document.unwrap_or(block.first_document);
        let unread = entries.get(self.entries_read..).unwrap_or_default();
        for (read, (distance, impact)) in unread.iter().enumerate() {
            let next = document.wrapping_add((*distance).into());
            if next >= range.end {
                self.entries_read += read;
                self.document = Some(document);
                return false;
            }
            document = next;
            if document >= range.start {
                each(document, *impact);
            }
        }
        true
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
        fn readers_read_each_range_once(
            steps in proptest::collection::vec((1..90_000_u32, any::<u16>()), 0..600),
            ranges in proptest::collection::vec((0..3_000_000_u32, 0..3_000_000_u32), 0..12),
        ) {
            let (mut postings, mut document) = (Postings::default(), 0);
            for (step, impact) in steps {
                document += if step % 3 == 0 { step } else { step % 50 + 1 };
                postings.push(document, Impact::new(f32::from(impact) / 100.0));
            }
            let (mut reader, mut start) = (postings.reader(), 0);
            for (skipped, length) in ranges {
                let range = start + skipped..start + skipped + length;
                start = range.end;
                let mut read = Vec::new();
                reader.read(&range, |document, impact| read.push((document, impact)));
                let mut expected = all(&postings);
                expected.retain(|(document, _)| range.contains(document));
                prop_assert_eq!(read, expected);
            }
        }

        #[test]
        fn postings_are_a_sorted_list(
            steps in proptest::collection::vec((1..400_000_u32, any::<u16>()), 0..600),
            removed in proptest::collection::vec((0..1200_u32, 0..400_u32), 0..4),
        ) {
            let (mut postings, mut model, mut document) = (Postings::default(), BTreeMap::new(), 0);
            for (step, impact) in steps {
                document += step;
                let impact = Impact::new(f32::from(impact) / 100.0);
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
