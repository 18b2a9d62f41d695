//! What stands around the content of calls: whitespace, separators, end tags and words in brackets.

use super::{
    element::ParseContext,
    token::{TagMatch, TokenKind, match_tag},
};

const BRACKET_STARTS: [&str; 4] = ["[TOOL_CALLS]", "[TOOL_CALL]", "[TOOL_REQUEST]", "[FUNCTION_CALL]"];
const BRACKET_ENDS: [&str; 4] = ["[/TOOL_CALLS]", "[/TOOL_CALL]", "[END_TOOL_REQUEST]", "[/TOOL_REQUEST]"];

/// A bracketed word with its length in bytes.
pub(super) enum BracketWord {
    /// More text is needed to decide.
    Incomplete,
    Start(usize),
    End(usize),
}

/// Matches a bracketed word at the front of a text that starts with `[`.
pub(super) fn match_bracket_word(text: &str, is_final: bool) -> Option<BracketWord> {
    if let Some(word) = BRACKET_STARTS.iter().find(|word| text.starts_with(*word)) {
        return Some(BracketWord::Start(word.len()));
    }
    if let Some(word) = BRACKET_ENDS.iter().find(|word| text.starts_with(*word)) {
        return Some(BracketWord::End(word.len()));
    }
    let may_follow = BRACKET_STARTS.iter().chain(&BRACKET_ENDS).any(|word| word.starts_with(text));
    (may_follow && !is_final).then_some(BracketWord::Incomplete)
}

/// Whether a text starts with a bracketed word.
pub(super) fn starts_with_bracket_word(text: &str) -> bool {
    let is_final = true;
    match_bracket_word(text, is_final).is_some()
}

/// The position and text after whitespace.
pub(super) fn skip_whitespace(text: &str, from: usize) -> (usize, &str) {
    let rest = text.get(from..).unwrap_or_default();
    let trimmed = rest.trim_start();
    (from + rest.len() - trimmed.len(), trimmed)
}

/// The position and text after whitespace, commas and surplus closing brackets.
pub(super) fn skip_separators(text: &str, from: usize) -> (usize, &str) {
    let rest = text.get(from..).unwrap_or_default();
    let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '}' | ']'));
    (from + rest.len() - trimmed.len(), trimmed)
}

/// The position after a call's end tag, if it has one, and after a code fence before it. `None` if more text is needed.
pub(super) fn skip_call_end(text: &str, from: usize, context: ParseContext<'_>) -> Option<usize> {
    let (mut at, mut rest) = skip_separators(text, from);
    if rest.starts_with('`') {
        (at, rest) = skip_whitespace(text, at + rest.len() - rest.trim_start_matches('`').len());
    }
    if rest.is_empty() {
        return context.is_final.then_some(text.len());
    }
    if rest.starts_with('<') {
        return match match_tag(rest, context.is_final) {
            TagMatch::Incomplete => None,
            TagMatch::Token(token) if token.kind == TokenKind::CallEnd => Some(at + token.len),
            TagMatch::Token(_) | TagMatch::Unknown => Some(from),
        };
    }
    if rest.starts_with('[') {
        let end = BRACKET_ENDS.iter().find(|end| rest.starts_with(*end));
        if end.is_none() && !context.is_final && BRACKET_ENDS.iter().any(|end| end.starts_with(rest)) {
            return None;
        }
        return Some(end.map_or(from, |end| at + end.len()));
    }
    Some(from)
}
