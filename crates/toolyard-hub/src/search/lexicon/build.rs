//! Builds a lexicon from the entries of a dictionary.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{
    entry::Entry,
    error::LexiconError,
    form::{LONGEST_WORD, is_han},
    gloss::{Gloss, Rank, glosses, referred},
    write::{Content, write},
};

/// Where a lexicon comes from, and what has to be said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The language whose words it explains, such as `zh`.
    pub language: String,
    /// The dictionary's name.
    pub name: String,
    /// Where it was taken from, in words a person can follow.
    pub source: String,
    /// The licence of the dictionary, and so of the lexicon.
    pub licence: String,
    /// Who made it, and what was changed.
    pub attribution: String,
}

/// A lexicon that was built, and what became of the dictionary.
#[derive(Debug, Clone)]
pub struct Built {
    /// What to write into a file.
    pub bytes: Vec<u8>,
    /// How many entries were read.
    pub entries: usize,
    /// How many words it has.
    pub words: usize,
}

/// No word keeps more meanings than this.
const MEANINGS: usize = 6;

/// Builds a lexicon.
///
/// # Errors
/// When there are no entries, or more than a lexicon can hold.
pub fn build(entries: impl IntoIterator<Item = Entry>, origin: &Origin) -> Result<Built, LexiconError> {
    let entries: Vec<Entry> = entries.into_iter().filter(is_usable).collect();
    if entries.is_empty() {
        return Err(LexiconError::NoEntries);
    }
    let mut content = Content { letters: letters(&entries), words: BTreeMap::new() };
    let mut found: BTreeMap<String, Vec<Gloss>> = BTreeMap::new();
    let mut references: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut names: HashSet<String> = HashSet::new();
    for entry in &entries {
        let word = content.simplified(&entry.simplified);
        if is_name(entry) {
            names.insert(word.clone());
        }
        let meanings = found.entry(word.clone()).or_default();
        meanings.extend(meanings_of(entry));
        let targets = entry.definitions.iter().filter_map(|definition| referred(definition));
        references.entry(word).or_default().extend(targets.map(|target| content.simplified(target)));
    }
    let words: BTreeMap<String, Vec<Vec<String>>> = found
        .iter()
        .map(|(word, own)| {
            let targets = references.get(word).into_iter().flatten();
            let theirs = targets.filter_map(|target| found.get(target)).flatten();
            let meanings: Vec<&Gloss> = if own.is_empty() { theirs.collect() } else { own.iter().collect() };
            (word.clone(), best(meanings))
        })
        // Two letters without a useful meaning stay as a word, so that nobody reads them as two words of one letter; so do
        // names. Of other words that say nothing as a whole the parts may.
        .filter(|(word, meanings)| !meanings.is_empty() || word.chars().count() == 2 || names.contains(word))
        .collect();
    content.words = words;
    let words = content.words.len();
    Ok(Built { bytes: write(&content, origin)?, entries: entries.len(), words })
}

/// Words of Chinese letters only, and no proverbs.
fn is_usable(entry: &Entry) -> bool {
    let is_word = |word: &str| word.chars().all(is_han) && word.chars().count() <= LONGEST_WORD;
    is_word(&entry.simplified) && is_word(&entry.traditional)
}

fn is_name(entry: &Entry) -> bool {
    entry.pinyin.starts_with(|letter: char| letter.is_uppercase())
}

/// What an entry says; of a proper name only how it is called.
fn meanings_of(entry: &Entry) -> Vec<Gloss> {
    let is_name = is_name(entry);
    let mut meanings: Vec<Gloss> = Vec::new();
    for definition in &entry.definitions {
        let mut said = glosses(definition);
        if is_name {
            said.truncate(1);
            said.iter_mut().for_each(|gloss| gloss.rank = gloss.rank.max(Rank::Rare));
        }
        meanings.append(&mut said);
    }
    meanings
}

/// The likeliest meanings, none twice; explanations only where nothing else is said.
fn best(mut meanings: Vec<&Gloss>) -> Vec<Vec<String>> {
    meanings.sort_by_key(|gloss| gloss.rank);
    let mut kept: Vec<Vec<String>> = Vec::new();
    for gloss in meanings {
        let is_full = kept.len() >= if gloss.rank == Rank::Explanation { 1 } else { MEANINGS };
        if !is_full && !kept.contains(&gloss.words) {
            kept.push(gloss.words.clone());
        }
    }
    kept
}

/// How most words that are written in both ways simplify a letter.
fn letters(entries: &[Entry]) -> BTreeMap<char, char> {
    let mut uses: HashMap<(char, char), u32> = HashMap::new();
    for entry in entries {
        let pairs = entry.traditional.chars().zip(entry.simplified.chars());
        if entry.traditional.chars().count() == entry.simplified.chars().count() {
            pairs.for_each(|pair| *uses.entry(pair).or_default() += 1);
        }
    }
    let mut most: BTreeMap<char, (u32, char)> = BTreeMap::new();
    for ((traditional, simplified), count) in uses {
        let known = most.entry(traditional).or_insert((count, simplified));
        *known = (*known).max((count, simplified));
    }
    let changed = |(traditional, (_, simplified)): (char, (u32, char))| {
        (traditional != simplified).then_some((traditional, simplified))
    };
    most.into_iter().filter_map(changed).collect()
}
