//! Builds a lexicon from the entries of a dictionary.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    cedict::DictionaryEntry,
    error::LexiconError,
    format::MAX_WORD_CHARS,
    gloss::{Gloss, GlossRank, cross_reference, parse_glosses},
    origin::Origin,
    script::is_han,
    writer::{LexiconContent, serialize},
};

/// A lexicon file and statistics about it.
#[derive(Debug, Clone)]
pub struct LexiconBuild {
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// Number of dictionary entries used.
    pub entries: usize,
    /// Number of words in the lexicon.
    pub words: usize,
}

/// Further glosses of a word are dropped.
const MAX_GLOSSES_PER_WORD: usize = 6;

/// Builds a lexicon from the entries of a dictionary.
///
/// # Errors
/// If there are no usable entries, or more than a lexicon can hold.
pub fn build_lexicon(
    entries: impl IntoIterator<Item = DictionaryEntry>,
    origin: &Origin,
) -> Result<LexiconBuild, LexiconError> {
    let entries: Vec<DictionaryEntry> = entries.into_iter().filter(is_usable).collect();
    if entries.is_empty() {
        return Err(LexiconError::NoEntries);
    }
    let mut content = LexiconContent { simplifications: simplifications(&entries), words: BTreeMap::new() };
    let mut glosses: BTreeMap<String, Vec<Gloss>> = BTreeMap::new();
    let mut references: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut proper_names: HashSet<String> = HashSet::new();
    for entry in &entries {
        let word = content.simplified(&entry.simplified);
        if is_proper_name(entry) {
            proper_names.insert(word.clone());
        }
        let glosses_of_word = glosses.entry(word.clone()).or_default();
        glosses_of_word.extend(entry_glosses(entry));
        let targets = entry.definitions.iter().filter_map(|definition| cross_reference(definition));
        references.entry(word).or_default().extend(targets.map(|target| content.simplified(target)));
    }
    let words: BTreeMap<String, Vec<Vec<String>>> = glosses
        .iter()
        .map(|(word, own_glosses)| {
            let targets = references.get(word).into_iter().flatten();
            let referenced = targets.filter_map(|target| glosses.get(target)).flatten();
            let glosses_of_word: Vec<&Gloss> =
                if own_glosses.is_empty() { referenced.collect() } else { own_glosses.iter().collect() };
            (word.clone(), best_glosses(glosses_of_word))
        })
        // Words of two characters and proper names stay even without a gloss, so that the segmenter does not split them.
        // Other words without a gloss are left out: their parts may have one.
        .filter(|(word, glosses_of_word)| {
            !glosses_of_word.is_empty() || word.chars().count() == 2 || proper_names.contains(word)
        })
        .collect();
    content.words = words;
    let words = content.words.len();
    Ok(LexiconBuild { bytes: serialize(&content, origin)?, entries: entries.len(), words })
}

/// Whether both spellings have Chinese characters only and are short enough.
fn is_usable(entry: &DictionaryEntry) -> bool {
    let is_word = |word: &str| word.chars().all(is_han) && word.chars().count() <= MAX_WORD_CHARS;
    is_word(&entry.simplified) && is_word(&entry.traditional)
}

fn is_proper_name(entry: &DictionaryEntry) -> bool {
    entry.pinyin.starts_with(|letter: char| letter.is_uppercase())
}

/// The glosses of an entry; of a proper name, only the first one of each definition.
fn entry_glosses(entry: &DictionaryEntry) -> Vec<Gloss> {
    let is_proper_name = is_proper_name(entry);
    let mut glosses_of_word: Vec<Gloss> = Vec::new();
    for definition in &entry.definitions {
        let mut parsed = parse_glosses(definition);
        if is_proper_name {
            parsed.truncate(1);
            parsed.iter_mut().for_each(|gloss| gloss.rank = gloss.rank.max(GlossRank::Rare));
        }
        glosses_of_word.append(&mut parsed);
    }
    glosses_of_word
}

/// The likeliest distinct glosses; an explanation only where there is nothing else.
fn best_glosses(mut glosses_of_word: Vec<&Gloss>) -> Vec<Vec<String>> {
    glosses_of_word.sort_by_key(|gloss| gloss.rank);
    let mut kept: Vec<Vec<String>> = Vec::new();
    for gloss in glosses_of_word {
        let is_full =
            kept.len() >= if gloss.rank == GlossRank::Explanation { 1 } else { MAX_GLOSSES_PER_WORD };
        if !is_full && !kept.contains(&gloss.words) {
            kept.push(gloss.words.clone());
        }
    }
    kept
}

/// Traditional characters and their most frequent simplified form, where the two differ.
fn simplifications(entries: &[DictionaryEntry]) -> BTreeMap<char, char> {
    let mut counts: HashMap<(char, char), u32> = HashMap::new();
    for entry in entries {
        let pairs = entry.traditional.chars().zip(entry.simplified.chars());
        if entry.traditional.chars().count() == entry.simplified.chars().count() {
            pairs.for_each(|pair| *counts.entry(pair).or_default() += 1);
        }
    }
    let mut most_frequent: BTreeMap<char, (u32, char)> = BTreeMap::new();
    for ((traditional, simplified), count) in counts {
        let best = most_frequent.entry(traditional).or_insert((count, simplified));
        *best = (*best).max((count, simplified));
    }
    let if_different = |(traditional, (_, simplified)): (char, (u32, char))| {
        (traditional != simplified).then_some((traditional, simplified))
    };
    most_frequent.into_iter().filter_map(if_different).collect()
}
