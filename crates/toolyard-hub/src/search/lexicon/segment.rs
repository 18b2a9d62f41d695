//! Cuts Chinese text into words: as few as possible, and where that leaves a choice, as few single letters as possible.
//!
//! Without frequencies of words this agrees best with what people do: of the cuts with the fewest pieces, the one that
//! would be found from the end of the text.

use std::ops::Range;

use super::{form::is_han, index::StoredLexicon};

/// A word of a text, and its number in each dictionary that has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Where it stands, in bytes.
    pub(super) place: Range<usize>,
    /// Its numbers, in the order of the dictionaries.
    pub(super) numbers: Vec<Option<u32>>,
}

/// What speaks against a cut, the weightiest first: pieces, single letters that mean something (`的` may well stand alone),
/// letters in no dictionary, words that the first dictionary does not have.
type Cost = [u32; 4];

/// The best way to go on from a letter.
#[derive(Debug, Clone, Default)]
struct Step {
    cost: Cost,
    letters: usize,
    numbers: Vec<Option<u32>>,
}

/// The words of a text that are in a dictionary; what is not Chinese is left alone.
pub(super) fn words(dictionaries: &[&StoredLexicon], text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut run: Vec<(usize, char)> = Vec::new();
    for (at, letter) in text.char_indices() {
        if is_han(letter) {
            run.push((at, letter));
        } else if !run.is_empty() {
            cut(dictionaries, &run, &mut words);
            run.clear();
        }
    }
    cut(dictionaries, &run, &mut words);
    words
}

fn cut(dictionaries: &[&StoredLexicon], run: &[(usize, char)], words: &mut Vec<Word>) {
    let steps = steps(dictionaries, run);
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        let length = step.letters.max(1);
        let letters = run.get(at..).unwrap_or_default().get(..length).unwrap_or_default();
        if let ([(start, _), ..], [.., (last, letter)]) = (letters, letters)
            && step.numbers.iter().any(Option::is_some)
        {
            words.push(Word { place: *start..last + letter.len_utf8(), numbers: step.numbers.clone() });
        }
        at += length;
    }
}

/// The best step from every letter of a run, found from its end.
fn steps(dictionaries: &[&StoredLexicon], run: &[(usize, char)]) -> Vec<Step> {
    let simplified: Vec<Vec<char>> = dictionaries
        .iter()
        .map(|dictionary| run.iter().map(|(_, letter)| dictionary.simplified(*letter)).collect())
        .collect();
    // From the end, so that the step at the end of `known` is the one from the letter looked at last.
    let mut known: Vec<Step> = Vec::with_capacity(run.len());
    for at in (0..run.len()).rev() {
        let mut found: Vec<Vec<Option<u32>>> = Vec::new();
        for (place, (dictionary, letters)) in dictionaries.iter().zip(&simplified).enumerate() {
            dictionary.words_at(letters.get(at..).unwrap_or_default(), |length, number| {
                if found.len() < length {
                    found.resize(length, vec![None; dictionaries.len()]);
                }
                if let Some(slot) = found.get_mut(length - 1).and_then(|numbers| numbers.get_mut(place)) {
                    *slot = Some(number);
                }
            });
        }
        if found.is_empty() {
            found.push(vec![None; dictionaries.len()]);
        }
        let candidates = found.into_iter().enumerate().map(|(index, numbers)| (index + 1, numbers));
        let steps = candidates
            .filter(|(length, numbers)| *length == 1 || numbers.iter().any(Option::is_some))
            .map(|(letters, numbers)| {
                let is_single = letters == 1 && !means_nothing(dictionaries, &numbers);
                Step { cost: cost(is_single, &numbers, rest(&known, letters)), letters, numbers }
            });
        // The first of equals has the shortest word: the longer ones stand later in the text.
        known.push(steps.min_by_key(|step| step.cost).unwrap_or_default());
    }
    known.reverse();
    known
}

/// What the text behind a word costs.
fn rest(known: &[Step], letters: usize) -> Cost {
    known.len().checked_sub(letters).and_then(|at| known.get(at)).map_or_else(Cost::default, |step| step.cost)
}

/// Whether the first dictionary that has the word knows it to mean nothing.
fn means_nothing(dictionaries: &[&StoredLexicon], numbers: &[Option<u32>]) -> bool {
    let known =
        dictionaries.iter().zip(numbers).find_map(|(dictionary, number)| Some((dictionary, (*number)?)));
    known.is_some_and(|(dictionary, number)| dictionary.glosses(number).is_empty())
}

fn cost(is_single: bool, numbers: &[Option<u32>], rest: Cost) -> Cost {
    let [pieces, singles, unknown, foreign] = rest;
    let is_unknown = numbers.iter().all(Option::is_none);
    let is_foreign = numbers.first().is_none_or(Option::is_none);
    [
        pieces + 1,
        singles + u32::from(is_single),
        unknown + u32::from(is_unknown),
        foreign + u32::from(is_foreign),
    ]
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
