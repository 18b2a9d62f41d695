//! Segments Chinese text into words by dynamic programming: as few words as possible, then as few single characters as
//! possible.
//!
//! Ties are resolved from the end of the text, which agrees best with human segmentation where word frequencies are
//! unknown.

use std::ops::Range;

use super::{script::is_han, stored_lexicon::StoredLexicon};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Byte range in the text.
    pub(super) range: Range<usize>,
    /// Its id in each lexicon; `None` where the lexicon does not have it.
    pub(super) word_ids: Vec<Option<u32>>,
}

/// Cost of a segmentation, compared in this order: words, single characters that are not stop words, unknown characters,
/// words that the first lexicon does not have.
type Cost = [u32; 4];

/// The first word of the best segmentation from a position to the end, with the cost of that segmentation.
#[derive(Debug, Clone, Default)]
struct BestSegment {
    cost: Cost,
    chars: usize,
    word_ids: Vec<Option<u32>>,
}

/// The words of a text that a lexicon has. Other scripts are skipped.
pub(super) fn segment(lexicons: &[&StoredLexicon], text: &str) -> Vec<Segment> {
    let mut words = Vec::new();
    let mut run: Vec<(usize, char)> = Vec::new();
    for (at, letter) in text.char_indices() {
        if is_han(letter) {
            run.push((at, letter));
        } else if !run.is_empty() {
            segment_run(lexicons, &run, &mut words);
            run.clear();
        }
    }
    segment_run(lexicons, &run, &mut words);
    words
}

fn segment_run(lexicons: &[&StoredLexicon], run: &[(usize, char)], words: &mut Vec<Segment>) {
    let best_segments = best_segments(lexicons, run);
    let mut at = 0;
    while let Some(segment) = best_segments.get(at) {
        let length = segment.chars.max(1);
        let letters = run.get(at..).unwrap_or_default().get(..length).unwrap_or_default();
        if let ([(start, _), ..], [.., (last, letter)]) = (letters, letters)
            && segment.word_ids.iter().any(Option::is_some)
        {
            words.push(Segment {
                range: *start..last + letter.len_utf8(),
                word_ids: segment.word_ids.clone(),
            });
        }
        at += length;
    }
}

/// The best first segment from every position of a run, computed from its end.
fn best_segments(lexicons: &[&StoredLexicon], run: &[(usize, char)]) -> Vec<BestSegment> {
    let simplified: Vec<Vec<char>> = lexicons
        .iter()
        .map(|lexicon| run.iter().map(|(_, letter)| lexicon.simplified(*letter)).collect())
        .collect();
    // In reverse order: the last element belongs to the position computed last, which is the first in the text.
    let mut best_reversed: Vec<BestSegment> = Vec::with_capacity(run.len());
    for at in (0..run.len()).rev() {
        // At index `length - 1`: the ids of the word of this length.
        let mut ids_by_length: Vec<Vec<Option<u32>>> = Vec::new();
        for (position, (lexicon, letters)) in lexicons.iter().zip(&simplified).enumerate() {
            lexicon.for_each_prefix_word(letters.get(at..).unwrap_or_default(), |length, id| {
                if ids_by_length.len() < length {
                    ids_by_length.resize(length, vec![None; lexicons.len()]);
                }
                if let Some(slot) =
                    ids_by_length.get_mut(length - 1).and_then(|word_ids| word_ids.get_mut(position))
                {
                    *slot = Some(id);
                }
            });
        }
        if ids_by_length.is_empty() {
            ids_by_length.push(vec![None; lexicons.len()]);
        }
        let candidates = ids_by_length.into_iter().enumerate().map(|(index, word_ids)| (index + 1, word_ids));
        let best_segments = candidates
            .filter(|(length, word_ids)| *length == 1 || word_ids.iter().any(Option::is_some))
            .map(|(chars, word_ids)| {
                let is_single = chars == 1 && !is_stop_word(lexicons, &word_ids);
                BestSegment {
                    cost: cost(is_single, &word_ids, remaining_cost(&best_reversed, chars)),
                    chars,
                    word_ids,
                }
            });
        // `min_by_key` keeps the first, so ties prefer the shortest word here and longer words later.
        best_reversed.push(best_segments.min_by_key(|segment| segment.cost).unwrap_or_default());
    }
    best_reversed.reverse();
    best_reversed
}

/// Cost of the text after a word.
fn remaining_cost(best_reversed: &[BestSegment], chars: usize) -> Cost {
    best_reversed
        .len()
        .checked_sub(chars)
        .and_then(|at| best_reversed.get(at))
        .map_or_else(Cost::default, |segment| segment.cost)
}

/// Whether the first lexicon that has the word gives no gloss for it.
fn is_stop_word(lexicons: &[&StoredLexicon], word_ids: &[Option<u32>]) -> bool {
    let known = lexicons.iter().zip(word_ids).find_map(|(lexicon, id)| Some((lexicon, (*id)?)));
    known.is_some_and(|(lexicon, id)| lexicon.glosses(id).is_empty())
}

fn cost(is_single: bool, word_ids: &[Option<u32>], remaining_cost: Cost) -> Cost {
    let [words, singles, unknown, not_in_first] = remaining_cost;
    let is_unknown = word_ids.iter().all(Option::is_none);
    let is_not_in_first = word_ids.first().is_none_or(Option::is_none);
    [
        words + 1,
        singles + u32::from(is_single),
        unknown + u32::from(is_unknown),
        not_in_first + u32::from(is_not_in_first),
    ]
}

#[cfg(test)]
#[path = "segmenter_tests.rs"]
mod tests;
