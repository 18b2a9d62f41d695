//! What stands between the tags of a call: JSON mostly, and other forms of some models.

use super::{
    loose_json::{Brackets, Fault, read_value},
    named, python,
    scanner::{Found, Knowledge},
    shape::{Shape, Standing, shape},
    token::{Kind, Tag, Token, find_call_end, read_tag},
};
use serde_json::Value;

/// Words that end what began with a word in brackets.
const BRACKET_ENDS: [&str; 4] = ["[/TOOL_CALLS]", "[/TOOL_CALL]", "[END_TOOL_REQUEST]", "[/TOOL_REQUEST]"];

/// So many calls of a text may lack their end.
const MOST_ENDLESS: u32 = 16;

/// A call between tags; `text` begins with the opening one.
pub(super) fn call(text: &str, open: &Token, at_line_start: bool, known: Knowledge<'_>) -> Found {
    let (from, inside) = past_blanks(text, open.len);
    match inside.chars().next() {
        None if !known.is_final => Found::Wait,
        None if at_line_start => Found::CutOff(text.len()),
        None => Found::Text(open.len),
        Some('<') => match read_tag(inside, known.is_final) {
            Tag::Wait => Found::Wait,
            // A tag around tags.
            Tag::Is(token) if matches!(token.kind, Kind::Call | Kind::Function) => Found::Nothing(from),
            Tag::Is(token) if token.kind == Kind::CallEnd => Found::Text(from + token.len),
            Tag::Is(_) | Tag::Nothing => Found::Text(open.len),
        },
        Some(_) => match content(text, from, open.name.as_deref(), known) {
            // Only the tag is spoken about.
            Found::Text(_) => Found::Text(open.len),
            found => found,
        },
    }
}

/// A call after a word in brackets, which is so long.
pub(super) fn after_bracket(text: &str, open: usize, known: Knowledge<'_>) -> Found {
    let (from, inside) = past_blanks(text, open);
    match inside.chars().next() {
        None if !known.is_final => Found::Wait,
        None => Found::CutOff(text.len()),
        Some(_) => content(text, from, None, known),
    }
}

/// The inside of a call, from `from` on. [`Found::Text`] if it is none at all.
fn content(text: &str, from: usize, name: Option<&str>, known: Knowledge<'_>) -> Found {
    let inside = text.get(from..).unwrap_or_default();
    match inside.chars().next() {
        Some('{' | '[' | '"' | '“') => json(text, from, name, known),
        Some('`') => match past_fence(inside) {
            Some(skipped) if inside.get(skipped..).is_some_and(|rest| rest.starts_with(['{', '['])) => {
                json(text, from + skipped, name, known)
            }
            None if !known.is_final => Found::Wait,
            _ => Found::Text(from),
        },
        Some(c) if c.is_ascii_alphabetic() || c == '_' => named::call(text, from, known),
        _ => Found::Text(from),
    }
}

/// How long the line that opens a block of code is, with the blanks after it; none if it is not complete.
fn past_fence(text: &str) -> Option<usize> {
    let line = text.find('\n')?;
    let (from, rest) = past_blanks(text, line + 1);
    (!rest.is_empty()).then_some(from)
}

/// Where the text goes on after blanks.
pub(super) fn past_blanks(text: &str, from: usize) -> (usize, &str) {
    let rest = text.get(from..).unwrap_or_default();
    let trimmed = rest.trim_start();
    (from + rest.len() - trimmed.len(), trimmed)
}

/// One or several JSON values, and the tag that ends them. With a name given elsewhere they are its arguments.
pub(super) fn json(text: &str, from: usize, name: Option<&str>, known: Knowledge<'_>) -> Found {
    let mut values = Vec::new();
    let mut at = from;
    loop {
        match read_value(text.get(at..).unwrap_or_default(), Brackets::Closed) {
            Ok((value, used)) => {
                values.push(value);
                at += used;
            }
            Err(Fault::Incomplete) if !known.is_final => return Found::Wait,
            Err(fault) if values.is_empty() => return mend(text, from, name, fault, known),
            Err(_) => break,
        }
        let (next, rest) = past_separators(text, at);
        if rest.is_empty() && !known.is_final {
            return Found::Wait;
        }
        // Arguments end with their object, and so does everything that is not followed by another one.
        if name.is_some() || !rest.starts_with(['{', '[']) || named::bracket_token(rest, true).is_some() {
            break;
        }
        at = next;
    }
    let Some(end) = past_end(text, at, known) else { return Found::Wait };
    conclude(values, name, end, known)
}

/// What the values that were read are.
fn conclude(values: Vec<Value>, name: Option<&str>, end: usize, known: Knowledge<'_>) -> Found {
    let mut calls = Vec::new();
    for value in values {
        let value = match (name, value) {
            (Some(name), Value::Object(arguments)) if !is_call(&arguments, known) => {
                serde_json::json!({"name": name, "arguments": arguments})
            }
            (_, value) => value,
        };
        match shape(&value, Standing::Tagged, known.is_tool) {
            Shape::Calls(found) => calls.extend(found),
            Shape::Example => return Found::Example(end),
            Shape::Other => return Found::Unreadable(end),
        }
    }
    Found::Calls(end, calls)
}

/// Whether an object beside a tag with a name is a whole call rather than its arguments.
fn is_call(map: &serde_json::Map<String, Value>, known: Knowledge<'_>) -> bool {
    let name = map.get("name").or_else(|| map.get("tool_name")).and_then(Value::as_str);
    name.is_some_and(known.is_tool) && (map.contains_key("arguments") || map.contains_key("parameters"))
}

/// Tries what can be done safely for JSON that is broken: brackets that are missing before the end tag.
fn mend(text: &str, from: usize, name: Option<&str>, fault: Fault, known: Knowledge<'_>) -> Found {
    let inside = text.get(from..).unwrap_or_default();
    if inside.starts_with('[')
        && let Some(found) = python::calls(text, from, known)
    {
        return found;
    }
    let end = find_call_end(inside);
    if !known.is_final && (fault == Fault::Incomplete || end.is_none()) {
        return Found::Wait;
    }
    // Few texts have one call that never ends, and none has many: they are not read over and over again.
    let is_endless = fault == Fault::Incomplete || end.is_none();
    let endless = known.endless.get() + u32::from(is_endless);
    known.endless.set(endless);
    if endless > MOST_ENDLESS {
        return Found::CutOff(text.len());
    }
    let Some((at, len)) = end else {
        return match fault {
            Fault::Incomplete => Found::CutOff(text.len()),
            // Nobody knows where it ends; it is not for anybody's eyes up to the next paragraph.
            Fault::Invalid(_) => Found::Unreadable(inside.find("\n\n").map_or(text.len(), |end| from + end)),
        };
    };
    // The end tag may stand within a string that goes on; then the text is not read any further than that.
    let content = inside.get(..at).unwrap_or_default().trim_end().trim_end_matches('`');
    match read_value(content, Brackets::MayBeMissing) {
        Ok((value, used)) if content.get(used..).is_some_and(|rest| rest.trim().is_empty()) => {
            conclude(vec![value], name, from + at + len, known)
        }
        _ => Found::Unreadable(from + at + len),
    }
}

/// Past what may stand between values: blanks, commas, and brackets too many.
fn past_separators(text: &str, from: usize) -> (usize, &str) {
    let rest = text.get(from..).unwrap_or_default();
    let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '}' | ']'));
    (from + rest.len() - trimmed.len(), trimmed)
}

/// Past the end tag, if there is one, and past a fence before it; none if that cannot be told yet.
pub(super) fn past_end(text: &str, from: usize, known: Knowledge<'_>) -> Option<usize> {
    let (mut at, mut rest) = past_separators(text, from);
    if rest.starts_with('`') {
        (at, rest) = past_blanks(text, at + rest.len() - rest.trim_start_matches('`').len());
    }
    if rest.is_empty() {
        return known.is_final.then_some(text.len());
    }
    if rest.starts_with('<') {
        return match read_tag(rest, known.is_final) {
            Tag::Wait => None,
            Tag::Is(token) if token.kind == Kind::CallEnd => Some(at + token.len),
            Tag::Is(_) | Tag::Nothing => Some(from),
        };
    }
    if rest.starts_with('[') {
        let ends = BRACKET_ENDS.iter().find(|end| rest.starts_with(*end));
        if ends.is_none() && !known.is_final && BRACKET_ENDS.iter().any(|end| end.starts_with(rest)) {
            return None;
        }
        return Some(ends.map_or(from, |end| at + end.len()));
    }
    Some(from)
}
