//! The concepts of a tool, by the words of its server, its name and its title.

use super::{
    ConceptKind,
    table::{MAX_PHRASE_WORDS, TABLE},
};
use crate::analysis::{
    stemmer::stem_english,
    tokenizer::{TokenKind, tokenize},
};

/// Calls `each` with the term of every concept that a name mentions, once per mention. Names of servers have subjects only:
/// an action belongs to a tool.
pub(crate) fn for_each_tool_concept(name: &str, is_server: bool, mut each: impl FnMut(&str)) {
    let mut words: Vec<String> = Vec::new();
    let mut identifiers: Vec<String> = Vec::new();
    tokenize(name, |token, kind| match kind {
        TokenKind::Identifier => identifiers.push(stem_english(token)),
        _ => words.push(stem_english(token)),
    });
    let table = &*TABLE;
    let phrases =
        (1..=MAX_PHRASE_WORDS).flat_map(|length| words.windows(length).map(|phrase| phrase.join(" ")));
    let mut seen: Vec<usize> = Vec::new();
    for phrase in phrases.chain(identifiers) {
        for concept in table.by_tool_phrase.get(&phrase).map(Vec::as_slice).unwrap_or_default() {
            let Some(known) = table.concepts.get(*concept) else { continue };
            if (is_server && known.kind == ConceptKind::Action) || seen.contains(concept) {
                continue;
            }
            seen.push(*concept);
            each(&known.term);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concepts(name: &str, is_server: bool) -> Vec<String> {
        let mut all = Vec::new();
        for_each_tool_concept(name, is_server, |term| all.push(term.to_owned()));
        all
    }

    #[test]
    fn names_of_servers_and_tools_mention_concepts() {
        assert!(concepts("slack", true).contains(&"subject:chat".to_owned()));
        assert!(concepts("merge_pull_request", false).contains(&"subject:pull request".to_owned()));
        assert!(concepts("slack_reply_to_thread", false).contains(&"action:reply".to_owned()));
        assert!(concepts("brave-search", true).iter().all(|term| term.starts_with("subject:")));
        assert!(concepts("zzz", false).is_empty());
    }
}
