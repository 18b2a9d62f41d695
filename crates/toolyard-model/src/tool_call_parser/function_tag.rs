//! Calls whose tag names the tool: `<function=get_time>…</function>` and `<invoke name="get_time">…</invoke>`.

use serde_json::{Map, Value};

use super::{
    call_end::skip_whitespace,
    element::{Element, ParseContext},
    json_call::match_json,
    token::{TagMatch, Token, TokenKind, find_call_end, find_token, match_tag},
};
use crate::lenient_json::parse_prefix;

/// Matches a call with JSON or parameters as its content; `text` starts with its opening tag.
pub(super) fn match_function(text: &str, open: &Token, context: ParseContext<'_>) -> Element {
    let Some(name) = open.name.as_deref() else { return Element::Text(open.len) };
    let (from, inside) = skip_whitespace(text, open.len);
    match inside.chars().next() {
        None => context.at_end(Element::Truncated(text.len())),
        Some('{') => match_json(text, from, Some(name), context),
        Some('<') => match match_tag(inside, context.is_final) {
            TagMatch::Incomplete => Element::Incomplete,
            TagMatch::Token(token) if token.kind == TokenKind::CallEnd => {
                Element::named_call(from + token.len, name, Map::new(), context)
            }
            TagMatch::Token(token) if token.kind == TokenKind::CallPart => {
                match_parameters(text, from, name, context)
            }
            _ => Element::Text(open.len),
        },
        Some(_) => Element::Text(open.len),
    }
}

/// Matches `<parameter=timezone>Asia/Tokyo</parameter>` and `<parameter name="timezone">…`, up to the end of the call.
fn match_parameters(text: &str, from: usize, name: &str, context: ParseContext<'_>) -> Element {
    let mut arguments = Map::new();
    let mut at = from;
    loop {
        let (next, rest) = skip_whitespace(text, at);
        if rest.is_empty() {
            return context.at_end(Element::Truncated(text.len()));
        }
        let token = match match_tag(rest, context.is_final) {
            TagMatch::Incomplete => return Element::Incomplete,
            TagMatch::Token(token) => token,
            TagMatch::Unknown => return malformed_call(text, at, context),
        };
        match (token.kind, token.name) {
            (TokenKind::CallEnd, _) => {
                return Element::named_call(next + token.len, name, arguments, context);
            }
            (TokenKind::CallPart, Some(key)) => {
                let value = text.get(next + token.len..).unwrap_or_default();
                let end_tag =
                    |end: &Token| (end.kind == TokenKind::CallPart && end.name.is_none()).then_some(end.len);
                let Some((end, len)) = find_token(value, end_tag) else {
                    return context.at_end(Element::Truncated(text.len()));
                };
                arguments.insert(key, parse_parameter(value.get(..end).unwrap_or_default()));
                at = next + token.len + end + len;
            }
            _ => return malformed_call(text, at, context),
        }
    }
}

fn malformed_call(text: &str, at: usize, context: ParseContext<'_>) -> Element {
    match find_call_end(text.get(at..).unwrap_or_default()) {
        Some((end, len)) => Element::Malformed((at + end + len).max(1)),
        None => context.at_end(Element::Malformed(text.len())),
    }
}

/// Parses a value between tags: JSON where it can be nothing else, a string otherwise.
pub(super) fn parse_parameter(text: &str) -> Value {
    // The line breaks around a value on lines of its own do not belong to it.
    let text = match text.strip_prefix('\n') {
        Some(text) => text.strip_suffix('\n').unwrap_or(text),
        None => text,
    };
    match serde_json::from_str(text.trim()) {
        Ok(Value::String(_)) | Err(_) => match parse_prefix(text.trim()) {
            // Lists and objects in Python syntax.
            Ok((value @ (Value::Array(_) | Value::Object(_)), used)) if used == text.trim().len() => value,
            _ => Value::from(text),
        },
        Ok(value) => value,
    }
}
