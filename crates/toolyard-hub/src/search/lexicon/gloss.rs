//! Makes the words a tool is described with out of a dictionary's definitions, and leaves out what only readers need.

use super::form::is_han;

/// One thing a word may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gloss {
    /// Lowercase words.
    pub(super) words: Vec<String>,
    /// What goes first.
    pub(super) rank: Rank,
}

/// How likely a meaning is in a request to a tool, the likeliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Marked as a word of computing or another trade.
    Trade,
    Usual,
    /// Said to be rare, figurative or colloquial.
    Rare,
    /// Many words that explain instead of translating.
    Explanation,
}

/// More words explain instead of translating.
const TRANSLATION: usize = 3;
/// An explanation with more words than this is of no use either.
const EXPLANATION: usize = 5;

/// Definitions that begin so say nothing about the meaning.
const TALK: [&str; 26] = [
    "CL:",
    "surname ",
    "variant of",
    "old variant",
    "erhua variant",
    "ancient variant",
    "archaic variant",
    "nonstandard",
    "Japanese variant",
    "Taiwan variant",
    "see ",
    "also written",
    "also pr.",
    "also called",
    "Taiwan pr.",
    "Beijing pr.",
    "used in ",
    "classifier for",
    "classifier:",
    "pr. [",
    "lit. ",
    "same as ",
    "equivalent to ",
    "euphemism for",
    "euphemistic variant",
    "old name for",
];
/// A definition with one of these is about characters, or a place nobody has tools for.
const USELESS: [&str; 11] = [
    "radical in Chinese",
    "Kangxi radical",
    "component in Chinese",
    "phonetic",
    " county",
    " township",
    "prefecture",
    "district of",
    "heavenly stem",
    "earthly branch",
    "hexagram",
];
/// Notes in brackets that tell a word of a trade.
const TRADES: [&str; 14] = [
    "computing",
    "Internet",
    "software",
    "programming",
    "telecommunications",
    "networking",
    "database",
    "finance",
    "math",
    "statistics",
    "photography",
    "typography",
    "economics",
    "information technology",
];
/// Notes in brackets after which a meaning is not for today's requests.
const BYGONE: [&str; 15] = [
    "archaic",
    "old",
    "literary",
    "classical",
    "dialect",
    "slang",
    "vulgar",
    "idiom",
    "onom",
    "Buddhism",
    "derog",
    "Taoism",
    "taboo",
    "coarse",
    "proverb",
];
/// Notes in brackets after which a meaning stands behind the others.
const RARE: [&str; 4] = ["fig.", "coll.", "loanword", "dated"];
/// Words that carry no meaning of their own; they stay only where nothing else is left.
const SMALL: [&str; 52] = [
    "a",
    "an",
    "the",
    "to",
    "of",
    "and",
    "or",
    "for",
    "in",
    "on",
    "at",
    "by",
    "with",
    "from",
    "as",
    "be",
    "is",
    "are",
    "it",
    "its",
    "that",
    "which",
    "who",
    "into",
    "sb",
    "sth",
    "sbs",
    "sths",
    "ones",
    "oneself",
    "one",
    "etc",
    "esp",
    "eg",
    "ie",
    "abbr",
    "fig",
    "usu",
    "usually",
    "especially",
    "very",
    "so",
    "such",
    "other",
    "his",
    "her",
    "their",
    "some",
    "any",
    "this",
    "s",
    "being",
];

/// What a definition says, each meaning in as few words as possible.
pub(super) fn glosses(definition: &str) -> Vec<Gloss> {
    if TALK.iter().any(|start| definition.starts_with(start))
        || USELESS.iter().any(|part| definition.contains(part))
    {
        return Vec::new();
    }
    let (plain, notes) = without_notes(definition);
    let noted = |marks: &[&str]| notes.iter().any(|note| has_mark(note, marks));
    // A note that begins with a year tells when somebody lived.
    if noted(&BYGONE) || notes.iter().any(|note| note.starts_with(|letter: char| letter.is_ascii_digit())) {
        return Vec::new();
    }
    let usual = match () {
        () if noted(&TRADES) => Rank::Trade,
        () if noted(&RARE) || plain.trim_start().starts_with("fig.") => Rank::Rare,
        () => Rank::Usual,
    };
    let alternatives = plain.split([';', ',', ':']).flat_map(|piece| piece.split(" or "));
    alternatives.filter_map(|piece| gloss(piece, usual)).collect()
}

fn has_mark(note: &str, marks: &[&str]) -> bool {
    let words = || note.split(|letter: char| !letter.is_alphanumeric() && letter != '.');
    marks.iter().any(|mark| match mark.contains(' ') {
        true => note.contains(mark),
        false => words().any(|word| word == *mark || word.trim_end_matches('.') == *mark),
    })
}

/// The word that a definition refers to instead of saying something: `variant of 個|个[ge4]` is about `个`.
pub(super) fn referred(definition: &str) -> Option<&str> {
    const REFERENCES: [&str; 6] =
        ["variant of ", "erhua variant of ", "old variant of ", "see ", "also written ", "same as "];
    let rest = REFERENCES.iter().find_map(|start| definition.strip_prefix(start))?;
    let word = rest.split(['[', ' ', ',', ';']).next()?;
    let simplified = word.split_once('|').map_or(word, |(_, simplified)| simplified);
    (!simplified.is_empty() && simplified.chars().all(is_han)).then_some(simplified)
}

/// A definition without what stands in brackets, and what stood there in round ones.
fn without_notes(definition: &str) -> (String, Vec<String>) {
    let (mut plain, mut notes) = (String::with_capacity(definition.len()), Vec::new());
    let (mut round, mut square) = (0_u32, 0_u32);
    let mut note = String::new();
    for letter in definition.chars() {
        match letter {
            '(' => round += 1,
            '[' => square += 1,
            ')' => {
                round = round.saturating_sub(1);
                if round == 0 {
                    notes.push(std::mem::take(&mut note));
                }
            }
            ']' => square = square.saturating_sub(1),
            _ if square > 0 => {}
            _ if round > 0 => note.push(letter),
            _ => plain.push(letter),
        }
    }
    (plain, notes)
}

fn gloss(piece: &str, usual: Rank) -> Option<Gloss> {
    let piece = piece.trim();
    // A part of a list may be talk although the whole is not: "abbr. for 人工智能, artificial intelligence".
    if TALK.iter().any(|start| piece.starts_with(start)) {
        return None;
    }
    let words: Vec<String> =
        piece.split_whitespace().filter(|word| !word.chars().any(is_han)).flat_map(plain_words).collect();
    let telling: Vec<String> = words.iter().filter(|word| !SMALL.contains(&word.as_str())).cloned().collect();
    let rank = match telling.len() {
        0 => return None,
        length if length <= TRANSLATION => usual,
        length if length <= EXPLANATION => Rank::Explanation,
        _ => return None,
    };
    let is_name = telling.iter().any(|word| word.chars().any(char::is_alphabetic));
    is_name.then_some(Gloss { words: telling, rank })
}

/// The lowercase words of something without spaces: `user-friendly` is two, `e-mail` and `one's` are one.
fn plain_words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace(['\'', '’'], "").replace("e-mail", "email");
    lower
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
#[path = "gloss_tests.rs"]
mod tests;
