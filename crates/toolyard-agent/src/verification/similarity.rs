//! Similarity of two texts by their words.

use std::collections::HashSet;

const MAX_COMPARED_CHARS: usize = 20_000;

/// The share of common words of two texts, from 0 to 1.
pub(super) fn jaccard_similarity(one: &str, other: &str) -> f64 {
    let (one, other) = (word_set(one), word_set(other));
    let all = one.union(&other).count();
    if all == 0 {
        return 1.0;
    }
    let to_f64 = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
    to_f64(one.intersection(&other).count()) / to_f64(all)
}

/// The words of a text; each Chinese character is a word.
fn word_set(text: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    let mut word = String::new();
    for letter in text.chars().take(MAX_COMPARED_CHARS) {
        let is_ideograph = matches!(letter, '\u{4e00}'..='\u{9fff}');
        if letter.is_alphanumeric() && !is_ideograph {
            word.extend(letter.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.insert(std::mem::take(&mut word));
        }
        if is_ideograph {
            words.insert(letter.to_string());
        }
    }
    if !word.is_empty() {
        words.insert(word);
    }
    words
}
