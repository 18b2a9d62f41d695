//! Calls that name their tool outside of JSON: by a tag, a line, a token or a header.

use serde_json::{Map, Value};

use super::{
    TextCall,
    loose_json::{Brackets, Fault, read_value},
    python,
    scanner::{Found, Knowledge},
    shape::{Shape, Standing, arguments_of_text, clean_name, finish},
    tagged::{self, past_blanks, past_end},
    token::{Kind, Tag, Token, find, find_call_end, read_tag},
};

/// Words in brackets after which calls stand.
const BRACKETS: [&str; 4] = ["[TOOL_CALLS]", "[TOOL_CALL]", "[TOOL_REQUEST]", "[FUNCTION_CALL]"];
/// Words in brackets that end them, where they were not taken with the call.
const BRACKET_ENDS: [&str; 4] = ["[/TOOL_CALLS]", "[/TOOL_CALL]", "[END_TOOL_REQUEST]", "[/TOOL_REQUEST]"];

/// No header of a message is longer.
const LONGEST_HEADER: usize = 300;

/// A word in brackets: [`Found::Text`] with its length if calls follow, [`Found::Nothing`] if it ends calls.
pub(super) fn bracket_token(text: &str, is_final: bool) -> Option<Found> {
    if let Some(word) = BRACKETS.iter().find(|word| text.starts_with(*word)) {
        return Some(Found::Text(word.len()));
    }
    if let Some(word) = BRACKET_ENDS.iter().find(|word| text.starts_with(*word)) {
        return Some(Found::Nothing(word.len()));
    }
    let may = BRACKETS.iter().chain(&BRACKET_ENDS).any(|word| word.starts_with(text));
    (may && !is_final).then_some(Found::Wait)
}

/// A call whose content begins with a word, from `from` on: its name, in one of several forms.
pub(super) fn call(text: &str, from: usize, known: Knowledge<'_>) -> Found {
    let inside = text.get(from..).unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let Some(end) = inside.find(|c| !is_name(c)) else {
        return if known.is_final { Found::Text(from) } else { Found::Wait };
    };
    let word = inside.get(..end).unwrap_or_default();
    let (next, rest) = past_blanks(text, from + end);
    // `call:get_time{timezone:<escape>Asia/Tokyo<escape>}`
    if let Some(name) = word.strip_prefix("call:") {
        return marked(text, next, name, known);
    }
    match rest.chars().next() {
        None if !known.is_final => Found::Wait,
        Some('{') => tagged::json(text, next, Some(word), known),
        Some('(') => python::calls(text, from, known).unwrap_or(Found::Text(from)),
        Some('[') if rest.starts_with("[ARGS]") => json_after(text, next + 6, word, known),
        Some('[') if !known.is_final && "[ARGS]".starts_with(rest) => Found::Wait,
        Some('[') if rest.starts_with("[CALL_ID]") => match rest.find("[ARGS]") {
            Some(at) => json_after(text, next + at + 6, word, known),
            None if known.is_final => Found::CutOff(text.len()),
            None => Found::Wait,
        },
        Some('<') => after_tag(text, next, word, known),
        _ => Found::Text(from),
    }
}

/// A name that is followed by a tag: a separator, arguments key by key, or the end.
fn after_tag(text: &str, at: usize, word: &str, known: Knowledge<'_>) -> Found {
    let rest = text.get(at..).unwrap_or_default();
    let token = match read_tag(rest, known.is_final) {
        Tag::Wait => return Found::Wait,
        Tag::Nothing => return Found::Text(at),
        Tag::Is(token) => token,
    };
    match (token.kind, token.word.as_str()) {
        (Kind::Part, "tool_sep") if word == "function" => {
            // The name stands on the rest of the line.
            let after = text.get(at + token.len..).unwrap_or_default();
            match after.find('\n') {
                Some(end) => {
                    let name = after.get(..end).unwrap_or_default().trim().to_owned();
                    json_after(text, at + token.len + end, &name, known)
                }
                None if known.is_final => Found::CutOff(text.len()),
                None => Found::Wait,
            }
        }
        (Kind::Part, "tool_sep" | "tool_call_argument_begin") => {
            json_after(text, at + token.len, word, known)
        }
        (Kind::Part, "arg_key") => pairs(text, at, word, known),
        // A word between tags is only a call if it is a tool's.
        (Kind::CallEnd, _) if (known.is_tool)(&clean_name(word, known.is_tool)) => {
            conclude(word, Map::new(), at + token.len, known)
        }
        _ => Found::Text(at),
    }
}

/// Arguments as JSON, perhaps within a block of code.
fn json_after(text: &str, from: usize, name: &str, known: Knowledge<'_>) -> Found {
    let (at, rest) = past_blanks(text, from);
    if rest.starts_with('`') {
        let Some(line) = rest.find('\n') else {
            return if known.is_final { Found::CutOff(text.len()) } else { Found::Wait };
        };
        let (at, rest) = past_blanks(text, at + line);
        return match rest.chars().next() {
            None if !known.is_final => Found::Wait,
            _ => tagged::json(text, at, Some(name), known),
        };
    }
    match rest.chars().next() {
        None if known.is_final => Found::CutOff(text.len()),
        None => Found::Wait,
        Some('{') => tagged::json(text, at, Some(name), known),
        Some(_) => match past_end(text, from, known) {
            Some(end) => conclude(name, Map::new(), end, known),
            None => Found::Wait,
        },
    }
}

/// `<arg_key>timezone</arg_key><arg_value>Asia/Tokyo</arg_value>`, any number of times.
fn pairs(text: &str, from: usize, name: &str, known: Knowledge<'_>) -> Found {
    let Some((end, len)) = find_call_end(text.get(from..).unwrap_or_default()) else {
        return if known.is_final { Found::CutOff(text.len()) } else { Found::Wait };
    };
    let inside = text.get(from..from + end).unwrap_or_default();
    let mut arguments = Map::new();
    for pair in inside.split("<arg_key>").skip(1) {
        let Some((key, value)) = pair.split_once("</arg_key>") else { continue };
        let value = value.split_once("<arg_value>").map_or("", |(_, value)| value);
        let value = value.split("</arg_value>").next().unwrap_or_default();
        arguments.insert(key.trim().to_owned(), value_of(value));
    }
    conclude(name, arguments, from + end + len, known)
}

/// `{timezone:<escape>Asia/Tokyo<escape>}`: strings stand between marks of their own.
fn marked(text: &str, at: usize, name: &str, known: Knowledge<'_>) -> Found {
    let inside = text.get(at..).unwrap_or_default();
    let Some((end, len)) = find_call_end(inside) else {
        return if known.is_final { Found::CutOff(text.len()) } else { Found::Wait };
    };
    let content = inside.get(..end).unwrap_or_default();
    let mark = if content.contains("<escape>") { "<escape>" } else { "<|\"|>" };
    let quoted = |(index, piece): (usize, &str)| {
        if index % 2 == 1 { Value::from(piece).to_string() } else { piece.to_owned() }
    };
    let json: String = content.split(mark).enumerate().map(quoted).collect();
    match arguments_of_text(&json) {
        Some(arguments) => conclude(name, arguments, at + end + len, known),
        None => Found::Unreadable(at + end + len),
    }
}

/// `<function=get_time>…</function>` and `<invoke name="get_time">…</invoke>`, with JSON or parameters inside.
pub(super) fn function(text: &str, open: &Token, known: Knowledge<'_>) -> Found {
    let Some(name) = open.name.as_deref() else { return Found::Text(open.len) };
    let (from, inside) = past_blanks(text, open.len);
    match inside.chars().next() {
        None if known.is_final => Found::CutOff(text.len()),
        None => Found::Wait,
        Some('{') => tagged::json(text, from, Some(name), known),
        Some('<') => match read_tag(inside, known.is_final) {
            Tag::Wait => Found::Wait,
            Tag::Is(token) if token.kind == Kind::CallEnd => {
                conclude(name, Map::new(), from + token.len, known)
            }
            Tag::Is(token) if token.kind == Kind::Part => parameters(text, from, name, known),
            _ => Found::Text(open.len),
        },
        Some(_) => Found::Text(open.len),
    }
}

/// `<parameter=timezone>Asia/Tokyo</parameter>` and `<parameter name="timezone">…`, up to the end of the call.
fn parameters(text: &str, from: usize, name: &str, known: Knowledge<'_>) -> Found {
    let mut arguments = Map::new();
    let mut at = from;
    loop {
        let (next, rest) = past_blanks(text, at);
        if rest.is_empty() {
            return if known.is_final { Found::CutOff(text.len()) } else { Found::Wait };
        }
        let token = match read_tag(rest, known.is_final) {
            Tag::Wait => return Found::Wait,
            Tag::Is(token) => token,
            Tag::Nothing => return broken(text, at, known),
        };
        match (token.kind, token.name) {
            (Kind::CallEnd, _) => return conclude(name, arguments, next + token.len, known),
            (Kind::Part, Some(key)) => {
                let value = text.get(next + token.len..).unwrap_or_default();
                let ends = |end: &Token| (end.kind == Kind::Part && end.name.is_none()).then_some(end.len);
                let Some((end, len)) = find(value, ends) else {
                    return if known.is_final { Found::CutOff(text.len()) } else { Found::Wait };
                };
                arguments.insert(key, value_of(value.get(..end).unwrap_or_default()));
                at = next + token.len + end + len;
            }
            _ => return broken(text, at, known),
        }
    }
}

fn broken(text: &str, at: usize, known: Knowledge<'_>) -> Found {
    match find_call_end(text.get(at..).unwrap_or_default()) {
        Some((end, len)) => Found::Unreadable((at + end + len).max(1)),
        None if known.is_final => Found::Unreadable(text.len()),
        None => Found::Wait,
    }
}

/// A value between tags: JSON where it can be nothing else, text otherwise.
fn value_of(text: &str) -> Value {
    // A value on lines of its own does not own their ends.
    let text = match text.strip_prefix('\n') {
        Some(text) => text.strip_suffix('\n').unwrap_or(text),
        None => text,
    };
    match serde_json::from_str(text.trim()) {
        Ok(Value::String(_)) | Err(_) => {
            match read_value(text.trim(), Brackets::Closed) {
                // Lists and objects as Python writes them.
                Ok((value @ (Value::Array(_) | Value::Object(_)), used)) if used == text.trim().len() => {
                    value
                }
                _ => Value::from(text),
            }
        }
        Ok(value) => value,
    }
}

fn conclude(name: &str, arguments: Map<String, Value>, end: usize, known: Knowledge<'_>) -> Found {
    let name = clean_name(name, known.is_tool);
    let call = TextCall { id: None, name, arguments, source: None };
    match finish(call, Standing::Tagged, known.is_tool) {
        Shape::Calls(calls) => Found::Calls(end, calls),
        Shape::Example => Found::Example(end),
        Shape::Other => Found::Unreadable(end),
    }
}

/// `Action: get_time` with `Action Input: {…}` on the next line, at the beginning of a line and for known tools only.
pub(super) fn action(text: &str, known: Knowledge<'_>) -> Option<Found> {
    const ACTION: &str = "Action:";
    const INPUT: &str = "Action Input:";
    if !known.is_final && ACTION.starts_with(text) {
        return Some(Found::Wait);
    }
    let after = text.strip_prefix(ACTION)?;
    let Some(end) = after.find('\n') else { return (!known.is_final).then_some(Found::Wait) };
    let name = clean_name(after.get(..end).unwrap_or_default(), known.is_tool);
    if !(known.is_tool)(&name) {
        return None;
    }
    let (at, rest) = past_blanks(text, ACTION.len() + end);
    if !known.is_final && INPUT.starts_with(rest) {
        return Some(Found::Wait);
    }
    if !rest.starts_with(INPUT) {
        return None;
    }
    let (at, rest) = past_blanks(text, at + INPUT.len());
    if rest.is_empty() {
        return Some(if known.is_final { Found::CutOff(text.len()) } else { Found::Wait });
    }
    match read_value(rest, Brackets::Closed) {
        Ok((Value::Object(arguments), used)) => Some(conclude(&name, arguments, at + used, known)),
        Err(Fault::Incomplete) if !known.is_final => Some(Found::Wait),
        Err(Fault::Incomplete) => Some(Found::CutOff(text.len())),
        _ => None,
    }
}

/// `<|channel|>commentary to=functions.get_time …<|message|>{…}`: a header that says what its message is.
pub(super) fn channel(text: &str, known: Knowledge<'_>) -> Found {
    let near = (0..=text.len().min(LONGEST_HEADER)).rev().find(|at| text.is_char_boundary(*at));
    let near = text.get(..near.unwrap_or(0)).unwrap_or_default();
    let message = find(near, |token| (token.word == "message").then_some(token.len));
    let Some((at, len)) = message else {
        return if known.is_final || text.len() > LONGEST_HEADER { Found::Text(1) } else { Found::Wait };
    };
    let header = text.get(..at).unwrap_or_default();
    let from = at + len;
    if let Some((_, name)) = header.split_once("to=") {
        let name = name.split([' ', '<', '\n']).next().unwrap_or_default();
        return json_after(text, from, name, known);
    }
    if !header.contains("analysis") {
        return Found::Nothing(from);
    }
    let ends = |token: &Token| matches!(token.kind, Kind::Noise | Kind::Channel).then_some(());
    match find(text.get(from..).unwrap_or_default(), ends) {
        Some((end, ())) => Found::Nothing(from + end),
        None if known.is_final => Found::Nothing(text.len()),
        None => Found::Wait,
    }
}
