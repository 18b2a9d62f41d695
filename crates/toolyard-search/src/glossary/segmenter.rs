//! Segments Chinese text into words by dynamic programming: as few words as possible, then as few single characters as
//! possible.
//!
//! Ties are resolved from the end of the text, which agrees best with human segmentation where word frequencies are
//! unknown.

use super::{
    WordTranslation,
    table::{Glossary, MAX_WORD_CHARS},
};

/// Cost of a segmentation, compared in this order: words, single characters that are not stop words, unknown characters.
type Cost = [u32; 3];

/// The first word of the best segmentation from a position to the end, with the cost of that segmentation.
#[derive(Debug, Clone, Copy, Default)]
struct BestSegment {
    cost: Cost,
    chars: usize,
    /// `None` for an unknown character; empty for a stop word.
    glosses: Option<&'static [Vec<String>]>,
}

/// Adds the words of a run of Chinese characters, given with their positions in the text, that have a translation.
pub(super) fn add_words(run: &[(usize, char)], words: &mut Vec<WordTranslation>) {
    let best_segments = best_segments(run);
    let mut at = 0;
    while let Some(segment) = best_segments.get(at) {
        let length = segment.chars.max(1);
        let letters = run.get(at..).unwrap_or_default().get(..length).unwrap_or_default();
        if let ([(start, _), ..], [.., (last, letter)]) = (letters, letters)
            && let Some(glosses @ [_, ..]) = segment.glosses
        {
            words.push(WordTranslation { range: *start..last + letter.len_utf8(), glosses });
        }
        at += length;
    }
}

/// The best first segment from every position of a run, computed from its end.
fn best_segments(run: &[(usize, char)]) -> Vec<BestSegment> {
    let glossary = Glossary::built_in();
    let simplified: Vec<char> = run.iter().map(|(_, letter)| glossary.simplified(*letter)).collect();
    // In reverse order: the last element belongs to the position computed last, which is the first in the text.
    let mut best_reversed: Vec<BestSegment> = Vec::with_capacity(run.len());
    for at in (0..run.len()).rev() {
        let mut word = String::new();
        let letters = simplified.iter().skip(at).take(MAX_WORD_CHARS);
        let candidates = letters.zip(1..).filter_map(|(letter, chars)| {
            word.push(*letter);
            let glosses = glossary.glosses(&word);
            let is_candidate = chars == 1 || glosses.is_some();
            let cost = cost(chars, glosses, remaining_cost(&best_reversed, chars));
            is_candidate.then_some(BestSegment { cost, chars, glosses })
        });
        // `min_by_key` keeps the first, so ties prefer the shortest word here and longer words later.
        let best = candidates.min_by_key(|segment| segment.cost).unwrap_or_default();
        best_reversed.push(best);
    }
    best_reversed.reverse();
    best_reversed
}

/// Cost of the text after a word.
fn remaining_cost(best_reversed: &[BestSegment], chars: usize) -> Cost {
    let next = best_reversed.len().checked_sub(chars).and_then(|at| best_reversed.get(at));
    next.map_or_else(Cost::default, |segment| segment.cost)
}

fn cost(chars: usize, glosses: Option<&[Vec<String>]>, remaining_cost: Cost) -> Cost {
    let [words, singles, unknown] = remaining_cost;
    let is_stop_word = glosses.is_some_and(<[_]>::is_empty);
    let is_single = chars == 1 && !is_stop_word;
    [words + 1, singles + u32::from(is_single), unknown + u32::from(glosses.is_none())]
}
