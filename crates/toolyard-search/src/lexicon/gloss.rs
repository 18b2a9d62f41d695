//! Reduces dictionary definitions to glosses: short translations, in words as tool descriptions use them.

use super::script::is_han;

/// A short translation of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gloss {
    /// Lowercase words.
    pub(super) words: Vec<String>,
    pub(super) rank: GlossRank,
}

/// How likely a meaning is in a request for a tool, the likeliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GlossRank {
    /// Labelled as a term of computing or another technical field.
    Technical,
    Common,
    /// Labelled as rare, figurative or colloquial.
    Rare,
    /// Too long for a translation.
    Explanation,
}

/// A gloss with more words is an explanation.
const MAX_TRANSLATION_WORDS: usize = 3;
/// Longer explanations are dropped.
const MAX_EXPLANATION_WORDS: usize = 5;

/// Definitions with these prefixes do not give a meaning.
const NON_GLOSS_PREFIXES: [&str; 26] = [
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
/// Definitions with these phrases are about characters or places and irrelevant for tools.
const IRRELEVANT_PHRASES: [&str; 11] = [
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
/// Labels (notes in parentheses) of technical terms.
const TECHNICAL_LABELS: [&str; 14] = [
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
/// Labels of meanings that are left out.
const EXCLUDED_LABELS: [&str; 15] = [
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
/// Labels of meanings that rank behind others.
const RARE_LABELS: [&str; 4] = ["fig.", "coll.", "loanword", "dated"];
/// Words that are removed from glosses, with the abbreviations of dictionaries.
const FUNCTION_WORDS: &str = "a an the to of and or for in on at by with from as be is are it its that which who into sb sth \
    sbs sths ones oneself one etc esp eg ie abbr fig usu usually especially very so such other his \
    her their some any this s being";

/// The glosses of one definition; none if it gives no meaning, or one that is irrelevant for tools.
pub(super) fn parse_glosses(definition: &str) -> Vec<Gloss> {
    if NON_GLOSS_PREFIXES.iter().any(|prefix| definition.starts_with(prefix))
        || IRRELEVANT_PHRASES.iter().any(|phrase| definition.contains(phrase))
    {
        return Vec::new();
    }
    let (plain, notes) = split_notes(definition);
    let is_labelled = |labels: &[&str]| notes.iter().any(|note| has_label(note, labels));
    // A note that starts with a year is the lifetime of a person.
    if is_labelled(&EXCLUDED_LABELS)
        || notes.iter().any(|note| note.starts_with(|letter: char| letter.is_ascii_digit()))
    {
        return Vec::new();
    }
    let rank = if is_labelled(&TECHNICAL_LABELS) {
        GlossRank::Technical
    } else if is_labelled(&RARE_LABELS) || plain.trim_start().starts_with("fig.") {
        GlossRank::Rare
    } else {
        GlossRank::Common
    };
    let alternatives = plain.split([';', ',', ':']).flat_map(|piece| piece.split(" or "));
    alternatives.filter_map(|piece| parse_gloss(piece, rank)).collect()
}

fn has_label(note: &str, labels: &[&str]) -> bool {
    let words = || note.split(|letter: char| !letter.is_alphanumeric() && letter != '.');
    labels.iter().any(|label| match label.contains(' ') {
        true => note.contains(label),
        false => words().any(|word| word == *label || word.trim_end_matches('.') == *label),
    })
}

/// The simplified word that a definition refers to: `个` for `variant of 個|个[ge4]`.
pub(super) fn cross_reference(definition: &str) -> Option<&str> {
    const REFERENCE_PREFIXES: [&str; 6] =
        ["variant of ", "erhua variant of ", "old variant of ", "see ", "also written ", "same as "];
    let rest = REFERENCE_PREFIXES.iter().find_map(|prefix| definition.strip_prefix(prefix))?;
    let word = rest.split(['[', ' ', ',', ';']).next()?;
    let simplified = word.split_once('|').map_or(word, |(_, simplified)| simplified);
    (!simplified.is_empty() && simplified.chars().all(is_han)).then_some(simplified)
}

/// Splits a definition into its text without brackets, and the notes in parentheses.
fn split_notes(definition: &str) -> (String, Vec<String>) {
    let (mut plain, mut notes) = (String::with_capacity(definition.len()), Vec::new());
    let (mut paren_depth, mut bracket_depth) = (0_u32, 0_u32);
    let mut note = String::new();
    for letter in definition.chars() {
        match letter {
            '(' => paren_depth += 1,
            '[' => bracket_depth += 1,
            ')' => {
                paren_depth = paren_depth.saturating_sub(1);
                if paren_depth == 0 {
                    notes.push(std::mem::take(&mut note));
                }
            }
            ']' => bracket_depth = bracket_depth.saturating_sub(1),
            _ if bracket_depth > 0 => {}
            _ if paren_depth > 0 => note.push(letter),
            _ => plain.push(letter),
        }
    }
    (plain, notes)
}

fn parse_gloss(piece: &str, rank: GlossRank) -> Option<Gloss> {
    let piece = piece.trim();
    // One part of a definition may have such a prefix, as in "cup; classifier for drinks".
    if NON_GLOSS_PREFIXES.iter().any(|prefix| piece.starts_with(prefix)) {
        return None;
    }
    let words: Vec<String> =
        piece.split_whitespace().filter(|word| !word.chars().any(is_han)).flat_map(plain_words).collect();
    let is_function_word = |word: &String| FUNCTION_WORDS.split(' ').any(|known| known == word);
    let content_words: Vec<String> = words.into_iter().filter(|word| !is_function_word(word)).collect();
    let rank = match content_words.len() {
        0 => return None,
        count if count <= MAX_TRANSLATION_WORDS => rank,
        count if count <= MAX_EXPLANATION_WORDS => GlossRank::Explanation,
        _ => return None,
    };
    let has_letters = content_words.iter().any(|word| word.chars().any(char::is_alphabetic));
    has_letters.then_some(Gloss { words: content_words, rank })
}

/// The lowercase words of a text without spaces: `user-friendly` is two, `e-mail` and `one's` are one.
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
