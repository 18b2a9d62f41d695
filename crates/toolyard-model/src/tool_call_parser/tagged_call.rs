//! Calls within tags or after a bracketed word.

use super::{
    call_end::skip_whitespace,
    element::{Element, ParseContext},
    json_call::match_json,
    name_first,
    token::{TagMatch, Token, TokenKind, match_tag},
};

/// Matches a call; `text` starts with its opening tag.
pub(super) fn match_call(
    text: &str,
    open: &Token,
    at_line_start: bool,
    context: ParseContext<'_>,
) -> Element {
    let (from, inside) = skip_whitespace(text, open.len);
    match inside.chars().next() {
        None if !context.is_final => Element::Incomplete,
        None if at_line_start => Element::Truncated(text.len()),
        None => Element::Text(open.len),
        Some('<') => match match_tag(inside, context.is_final) {
            TagMatch::Incomplete => Element::Incomplete,
            // A tag around calls with tags of their own.
            TagMatch::Token(token) if matches!(token.kind, TokenKind::Call | TokenKind::Function) => {
                Element::Hidden(from)
            }
            TagMatch::Token(token) if token.kind == TokenKind::CallEnd => Element::Text(from + token.len),
            TagMatch::Token(_) | TagMatch::Unknown => Element::Text(open.len),
        },
        Some(_) => match match_content(text, from, open.name.as_deref(), context) {
            // The text only mentions the tag.
            Element::Text(_) => Element::Text(open.len),
            element => element,
        },
    }
}

/// Matches a call after a bracketed word of `word_len` bytes.
pub(super) fn match_after_bracket_word(text: &str, word_len: usize, context: ParseContext<'_>) -> Element {
    let (from, inside) = skip_whitespace(text, word_len);
    if inside.is_empty() {
        return context.at_end(Element::Truncated(text.len()));
    }
    match_content(text, from, None, context)
}

/// Matches the content of a call. [`Element::Text`] if it is none.
fn match_content(text: &str, from: usize, name: Option<&str>, context: ParseContext<'_>) -> Element {
    let inside = text.get(from..).unwrap_or_default();
    match inside.chars().next() {
        Some('{' | '[' | '"' | '“') => match_json(text, from, name, context),
        Some('`') => match skip_opening_fence(inside) {
            Some(skipped) if inside.get(skipped..).is_some_and(|rest| rest.starts_with(['{', '['])) => {
                match_json(text, from + skipped, name, context)
            }
            None => context.at_end(Element::Text(from)),
            Some(_) => Element::Text(from),
        },
        Some(c) if c.is_ascii_alphabetic() || c == '_' => name_first::match_call(text, from, context),
        _ => Element::Text(from),
    }
}

/// The length of a line that opens a code block with the whitespace after it; `None` if more text is needed.
fn skip_opening_fence(text: &str) -> Option<usize> {
    let line = text.find('\n')?;
    let (from, rest) = skip_whitespace(text, line + 1);
    (!rest.is_empty()).then_some(from)
}
