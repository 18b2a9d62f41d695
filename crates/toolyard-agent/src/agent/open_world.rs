//! Which calls pass non-public data outside. Pure decisions; [`crate::DataSources`] says what arguments may contain.

use serde_json::Value;
use toolyard_core::{RawJson, SourceId};

use crate::DataSources;

/// Longer arguments are never taken for the user's own text.
const MAX_COMPARED_BYTES: usize = 4 << 10;

/// Whether calls that may pass non-public data to outside systems need an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OpenWorldRule {
    /// Such calls need an approval, unless a rule allows the tool.
    #[default]
    Ask,
    /// Such calls are treated like any other.
    Allow,
}

/// A source that may pass the arguments of a call to systems outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) source: SourceId,
    /// Whether the tool is declared as open-world, rather than assumed to be.
    pub(crate) is_declared: bool,
}

impl Destination {
    /// Whether sending data of these sources here discloses it. A source of which nothing is declared may get its own data
    /// back.
    fn discloses(&self, sources: &DataSources) -> bool {
        let is_own_data = !self.is_declared && sources.is_within(self.source.as_str());
        !sources.is_empty() && !is_own_data
    }
}

/// The sources whose data a call may disclose, if its arguments may contain data of `sources`.
pub(crate) fn disclosed_sources(destinations: &[Destination], sources: &DataSources) -> DataSources {
    let is_disclosed = destinations.iter().any(|destination| destination.discloses(sources));
    if is_disclosed { sources.clone() } else { DataSources::default() }
}

/// Whether arguments consist of nothing but passages that the user wrote, word for word: an object without nesting, whose
/// keys are parameters of the tool and whose values are texts or numbers of the user. Such arguments reveal at most which
/// passages were selected.
pub(crate) fn consists_of_user_text<'a>(
    arguments: &RawJson,
    parameters: &[String],
    user_texts: impl Iterator<Item = &'a str>,
) -> bool {
    if arguments.get().len() > MAX_COMPARED_BYTES {
        return false;
    }
    let Value::Object(entries) = arguments.to_value() else { return false };
    let texts: Vec<&str> = user_texts.collect();
    let is_written = |value: &str| texts.iter().any(|text| contains_words(text, value));
    entries.iter().all(|(key, value)| {
        parameters.contains(key)
            && match value {
                Value::String(text) => is_written(text),
                Value::Number(number) => is_written(&number.to_string()),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
            }
    })
}

/// Whether a text contains these words as they are, not as parts of other words.
fn contains_words(text: &str, words: &str) -> bool {
    if words.is_empty() || words.trim() != words {
        return false;
    }
    let is_boundary = |outer: Option<char>, inner: Option<char>| {
        !(outer.is_some_and(is_word_character) && inner.is_some_and(is_word_character))
    };
    text.match_indices(words).any(|(start, _)| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + words.len()..).and_then(|after| after.chars().next());
        is_boundary(before, words.chars().next()) && is_boundary(after, words.chars().next_back())
    })
}

/// Whether a character belongs to a word that is separated from others. Chinese and Japanese words are not.
fn is_word_character(letter: char) -> bool {
    letter.is_alphanumeric() && !('\u{2e80}'..='\u{9fff}').contains(&letter)
}

#[cfg(test)]
#[path = "open_world_tests.rs"]
mod tests;
