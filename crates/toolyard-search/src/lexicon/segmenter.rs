//! Segments Chinese text into words by dynamic programming: as few words as possible, then as few single characters as
//! possible.
//!
//! Ties are resolved from the end of the text, which agrees best with human segmentation where word frequencies are
//! unknown.

use std::ops::Range;

use super::{script::is_han, stored_lexicon::StoredLexicon};

/// A word of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Byte range in the text.
    pub(super) range: Range<usize>,
    /// Its number in every lexicon that has it.
    pub(super) word_ids: Vec<Option<u32>>,
}

/// Cost of a segmentation, compared in this order: words, single characters that are not stop words, unknown characters,
/// words that the first lexicon does not have.
type Cost = [u32; 4];

/// The best first word from a position, with the cost of the text from there.
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

/// The best segment from every position of a run, computed from its end.
fn best_segments(lexicons: &[&StoredLexicon], run: &[(usize, char)]) -> Vec<BestSegment> {
    let simplified: Vec<Vec<char>> = lexicons
        .iter()
        .map(|lexicon| run.iter().map(|(_, letter)| lexicon.simplified(*letter)).collect())
        .collect();
    // In reverse order: the last element belongs to the position computed last.
    let mut known: Vec<BestSegment> = Vec::with_capacity(run.len());
    for at in (0..run.len()).rev() {
        let mut found: Vec<Vec<Option<u32>>> = Vec::new();
        for (position, (lexicon, letters)) in lexicons.iter().zip(&simplified).enumerate() {
            lexicon.for_each_prefix_word(letters.get(at..).unwrap_or_default(), |length, number| {
                if found.len() < length {
                    found.resize(length, vec![None; lexicons.len()]);
                }
                if let Some(slot) = found.get_mut(length - 1).and_then(|word_ids| word_ids.get_mut(position))
                {
                    *slot = Some(number);
                }
            });
        }
        if found.is_empty() {
            found.push(vec![None; lexicons.len()]);
        }
        let candidates = found.into_iter().enumerate().map(|(index, word_ids)| (index + 1, word_ids));
        let best_segments = candidates
            .filter(|(length, word_ids)| *length == 1 || word_ids.iter().any(Option::is_some))
            .map(|(chars, word_ids)| {
                let is_single = chars == 1 && !is_stop_word(lexicons, &word_ids);
                BestSegment {
                    cost: cost(is_single, &word_ids, remaining_cost(&known, chars)),
                    chars,
                    word_ids,
                }
            });
        // `min_by_key` keeps the first, so ties prefer the shortest word here and longer words later.
        known.push(best_segments.min_by_key(|segment| segment.cost).unwrap_or_default());
    }
    known.reverse();
    known
}

/// Cost of the text after a word.
fn remaining_cost(known: &[BestSegment], chars: usize) -> Cost {
    known
        .len()
        .checked_sub(chars)
        .and_then(|at| known.get(at))
        .map_or_else(Cost::default, |segment| segment.cost)
}

/// Whether the first lexicon that has the word gives no gloss for it.
fn is_stop_word(lexicons: &[&StoredLexicon], word_ids: &[Option<u32>]) -> bool {
    let known = lexicons.iter().zip(word_ids).find_map(|(lexicon, number)| Some((lexicon, (*number)?)));
    known.is_some_and(|(lexicon, number)| lexicon.glosses(number).is_empty())
}

fn cost(is_single: bool, word_ids: &[Option<u32>], remaining_cost: Cost) -> Cost {
    let [pieces, singles, unknown, secondary] = remaining_cost;
    let is_unknown = word_ids.iter().all(Option::is_none);
    let is_secondary = word_ids.first().is_none_or(Option::is_none);
    [
        pieces + 1,
        singles + u32::from(is_single),
        unknown + u32::from(is_unknown),
        secondary + u32::from(is_secondary),
    ]
}

#[cfg(test)]
#[path = "segmenter_tests.rs"]
mod tests;
