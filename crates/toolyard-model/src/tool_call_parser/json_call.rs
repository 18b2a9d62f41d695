//! Calls as JSON within tags.

use serde_json::{Map, Value, json};

use super::{
    call_end::{skip_call_end, skip_separators, skip_whitespace, starts_with_bracket_word},
    call_object::{Interpretation, Markup, interpret_value},
    element::{Element, ParseContext},
    python_call,
    token::find_call_end,
};
use crate::lenient_json::{LenientJsonError, parse_prefix, parse_prefix_closing_brackets};

/// Limits the calls without an end, each of which is parsed up to the end of the text.
const MAX_UNTERMINATED_CALLS: u32 = 16;

/// Matches one or several JSON values and their end tag. If the call has a `name` outside of them, they are its arguments.
pub(super) fn match_json(text: &str, from: usize, name: Option<&str>, context: ParseContext<'_>) -> Element {
    let mut values = Vec::new();
    let mut at = from;
    loop {
        match parse_prefix(text.get(at..).unwrap_or_default()) {
            Ok((value, used)) => {
                values.push(value);
                at += used;
            }
            Err(LenientJsonError::Incomplete) if !context.is_final => return Element::Incomplete,
            Err(error) if values.is_empty() => return repair(text, from, name, error, context),
            Err(_) => break,
        }
        let (next, rest) = skip_separators(text, at);
        if rest.is_empty() && !context.is_final {
            return Element::Incomplete;
        }
        if name.is_some() || !rest.starts_with(['{', '[']) || starts_with_bracket_word(rest) {
            break;
        }
        at = next;
    }
    match skip_call_end(text, at, context) {
        Some(end) => interpret(values, name, end, context),
        None => Element::Incomplete,
    }
}

/// Matches the JSON arguments of a named call, perhaps in a code block.
pub(super) fn match_arguments(text: &str, from: usize, name: &str, context: ParseContext<'_>) -> Element {
    let (at, rest) = skip_whitespace(text, from);
    if rest.starts_with('`') {
        let Some(line) = rest.find('\n') else { return context.at_end(Element::Truncated(text.len())) };
        let (at, rest) = skip_whitespace(text, at + line);
        if rest.is_empty() && !context.is_final {
            return Element::Incomplete;
        }
        return match_json(text, at, Some(name), context);
    }
    match rest.chars().next() {
        None => context.at_end(Element::Truncated(text.len())),
        Some('{') => match_json(text, at, Some(name), context),
        Some(_) => match skip_call_end(text, from, context) {
            Some(end) => Element::named_call(end, name, Map::new(), context),
            None => Element::Incomplete,
        },
    }
}

/// Combines the calls in values whose end is at `end`.
fn interpret(values: Vec<Value>, name: Option<&str>, end: usize, context: ParseContext<'_>) -> Element {
    let mut calls = Vec::new();
    for value in values {
        let value = match (name, value) {
            (Some(name), Value::Object(arguments)) if !is_complete_call(&arguments, context) => {
                json!({"name": name, "arguments": arguments})
            }
            (_, value) => value,
        };
        match interpret_value(&value, Markup::Tagged, context.is_tool) {
            Interpretation::Calls(found) => calls.extend(found),
            Interpretation::Example => return Element::Example(end),
            Interpretation::NoCall => return Element::Malformed(end),
        }
    }
    Element::Calls(end, calls)
}

/// Whether an object in a tag with a name is a complete call rather than its arguments.
fn is_complete_call(map: &Map<String, Value>, context: ParseContext<'_>) -> bool {
    let name = map.get("name").or_else(|| map.get("tool_name")).and_then(Value::as_str);
    name.is_some_and(context.is_tool) && (map.contains_key("arguments") || map.contains_key("parameters"))
}

/// Repairs broken JSON where that is safe: closes brackets that are missing before the end tag.
fn repair(
    text: &str,
    from: usize,
    name: Option<&str>,
    error: LenientJsonError,
    context: ParseContext<'_>,
) -> Element {
    let inside = text.get(from..).unwrap_or_default();
    if inside.starts_with('[')
        && let Some(element) = python_call::match_tagged(text, from, context)
    {
        return element;
    }
    let end_tag = find_call_end(inside);
    let is_unterminated = error == LenientJsonError::Incomplete || end_tag.is_none();
    if is_unterminated && !context.is_final {
        return Element::Incomplete;
    }
    let unterminated_calls = context.unterminated_calls.get() + u32::from(is_unterminated);
    context.unterminated_calls.set(unterminated_calls);
    if unterminated_calls > MAX_UNTERMINATED_CALLS {
        return Element::Truncated(text.len());
    }
    let Some((at, len)) = end_tag else {
        return match error {
            LenientJsonError::Incomplete => Element::Truncated(text.len()),
            // The end is unknown; the call is assumed to end with its paragraph.
            LenientJsonError::Invalid(_) => {
                Element::Malformed(inside.find("\n\n").map_or(text.len(), |end| from + end))
            }
        };
    };
    // The end tag may be part of an open string, which makes the call malformed.
    let content = inside.get(..at).unwrap_or_default().trim_end().trim_end_matches('`');
    match parse_prefix_closing_brackets(content) {
        Ok((value, used)) if content.get(used..).is_some_and(|rest| rest.trim().is_empty()) => {
            interpret(vec![value], name, from + at + len, context)
        }
        _ => Element::Malformed(from + at + len),
    }
}
