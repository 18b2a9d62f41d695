//! Tagged calls whose content starts with the tool's name.

use serde_json::{Map, Value};

use super::{
    call_end::skip_whitespace,
    call_object::{normalize_name, parse_arguments},
    element::{Element, ParseContext},
    function_tag::parse_parameter,
    json_call::{match_arguments, match_json},
    python_call,
    token::{TagMatch, TokenKind, find_call_end, match_tag},
};

const ARGUMENTS_WORD: &str = "[ARGS]";

/// Matches a call whose content starts with a word at `from`. [`Element::Text`] if it is none.
pub(super) fn match_call(text: &str, from: usize, context: ParseContext<'_>) -> Element {
    let inside = text.get(from..).unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let Some(end) = inside.find(|c| !is_name(c)) else { return context.at_end(Element::Text(from)) };
    let name = inside.get(..end).unwrap_or_default();
    let (next, rest) = skip_whitespace(text, from + end);
    // `call:get_time{timezone:<escape>Asia/Tokyo<escape>}`
    if let Some(name) = name.strip_prefix("call:") {
        return match_escaped_arguments(text, next, name, context);
    }
    match rest.chars().next() {
        None if !context.is_final => Element::Incomplete,
        Some('{') => match_json(text, next, Some(name), context),
        Some('(') => python_call::match_tagged(text, from, context).unwrap_or(Element::Text(from)),
        Some('[') if rest.starts_with(ARGUMENTS_WORD) => {
            match_arguments(text, next + ARGUMENTS_WORD.len(), name, context)
        }
        Some('[') if !context.is_final && ARGUMENTS_WORD.starts_with(rest) => Element::Incomplete,
        Some('[') if rest.starts_with("[CALL_ID]") => match rest.find(ARGUMENTS_WORD) {
            Some(at) => match_arguments(text, next + at + ARGUMENTS_WORD.len(), name, context),
            None => context.at_end(Element::Truncated(text.len())),
        },
        Some('<') => match_after_name(text, next, name, context),
        _ => Element::Text(from),
    }
}

/// Matches the tag after a name: a separator, a key, or the end of the call.
fn match_after_name(text: &str, at: usize, name: &str, context: ParseContext<'_>) -> Element {
    let rest = text.get(at..).unwrap_or_default();
    let token = match match_tag(rest, context.is_final) {
        TagMatch::Incomplete => return Element::Incomplete,
        TagMatch::Unknown => return Element::Text(at),
        TagMatch::Token(token) => token,
    };
    match (token.kind, token.tag.as_str()) {
        // DeepSeek writes `function`, the separator and the name on the rest of the line.
        (TokenKind::CallPart, "tool_sep") if name == "function" => {
            let after = text.get(at + token.len..).unwrap_or_default();
            match after.find('\n') {
                Some(end) => {
                    let name = after.get(..end).unwrap_or_default().trim();
                    match_arguments(text, at + token.len + end, name, context)
                }
                None => context.at_end(Element::Truncated(text.len())),
            }
        }
        (TokenKind::CallPart, "tool_sep" | "tool_call_argument_begin") => {
            match_arguments(text, at + token.len, name, context)
        }
        (TokenKind::CallPart, "arg_key") => match_key_value_pairs(text, at, name, context),
        // A single word is a call only of a known tool.
        (TokenKind::CallEnd, _) if (context.is_tool)(&normalize_name(name, context.is_tool)) => {
            Element::named_call(at + token.len, name, Map::new(), context)
        }
        _ => Element::Text(at),
    }
}

/// Matches `<arg_key>timezone</arg_key><arg_value>Asia/Tokyo</arg_value>`, any number of times.
fn match_key_value_pairs(text: &str, from: usize, name: &str, context: ParseContext<'_>) -> Element {
    let Some((end, len)) = find_call_end(text.get(from..).unwrap_or_default()) else {
        return context.at_end(Element::Truncated(text.len()));
    };
    let inside = text.get(from..from + end).unwrap_or_default();
    let mut arguments = Map::new();
    for pair in inside.split("<arg_key>").skip(1) {
        let Some((key, value)) = pair.split_once("</arg_key>") else { continue };
        let value = value.split_once("<arg_value>").map_or("", |(_, value)| value);
        let value = value.split("</arg_value>").next().unwrap_or_default();
        arguments.insert(key.trim().to_owned(), parse_parameter(value));
    }
    Element::named_call(from + end + len, name, arguments, context)
}

/// Matches Gemma's `{timezone:<escape>Asia/Tokyo<escape>}`, whose strings stand between tokens in place of quotes.
fn match_escaped_arguments(text: &str, at: usize, name: &str, context: ParseContext<'_>) -> Element {
    let inside = text.get(at..).unwrap_or_default();
    let Some((end, len)) = find_call_end(inside) else {
        return context.at_end(Element::Truncated(text.len()));
    };
    let content = inside.get(..end).unwrap_or_default();
    let quote = if content.contains("<escape>") { "<escape>" } else { "<|\"|>" };
    let to_json = |(index, part): (usize, &str)| {
        if index % 2 == 1 { Value::from(part).to_string() } else { part.to_owned() }
    };
    let json: String = content.split(quote).enumerate().map(to_json).collect();
    match parse_arguments(&json) {
        Some(arguments) => Element::named_call(at + end + len, name, arguments, context),
        None => Element::Malformed(at + end + len),
    }
}
