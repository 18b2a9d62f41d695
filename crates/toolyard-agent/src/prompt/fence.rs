//! Keeps what strangers wrote from being taken for our own words: lines, markers, tags, control tokens.
//!
//! Foreign prose stands behind a mark of ours on every line, names stand bare only when they are plain, and values are
//! JSON. In all of them no `<` begins a tag and no bracket a control token of a chat template. Everything can be read
//! back exactly: [`unescaped`] undoes [`escaped`], and JSON undoes itself.

use std::{borrow::Cow, fmt::Write as _};

use serde_json::Value;
use toolyard_core::{hidden_places, without_hidden};

/// Control tokens of chat templates that are written in brackets.
const BRACKET_TOKENS: [&str; 16] = [
    "INST",
    "/INST",
    "SYSTEM_PROMPT",
    "/SYSTEM_PROMPT",
    "AVAILABLE_TOOLS",
    "/AVAILABLE_TOOLS",
    "TOOL_CALLS",
    "TOOL_RESULTS",
    "/TOOL_RESULTS",
    "TOOL_CONTENT",
    "CALL_ID",
    "ARGS",
    "THINK",
    "/THINK",
    "gMASK",
    "IMG",
];
/// Tags by which templates and agents tell who speaks, besides those with a bar.
const TAG_TOKENS: [&str; 23] = [
    "s>",
    "/s>",
    "<SYS>",
    "</SYS>",
    "tool_call",
    "/tool_call",
    "tool_response",
    "/tool_response",
    "start_of_turn",
    "end_of_turn",
    "bos>",
    "eos>",
    "unk>",
    "pad>",
    "think>",
    "/think>",
    "function_calls",
    "tools>",
    "function",
    "description>",
    "invoke",
    "parameter",
    "/function_calls",
];
/// What ends a line for somebody, besides the line feed.
const LINE_ENDS: [char; 6] = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Lines of prose without anything that people do not see. No line is empty.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n").replace(LINE_ENDS, "\n").replace('\t', "    ");
    let (clean, _) = without_hidden(&text);
    clean.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// The same as one line with single spaces.
pub(crate) fn one_line(text: &str) -> String {
    lines(text).iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// Prose in which no tag and no control token begins.
pub(crate) fn escaped(prose: &str) -> Cow<'_, str> {
    if !prose.contains(['<', '[', '&']) {
        return Cow::Borrowed(prose);
    }
    let mut out = String::with_capacity(prose.len() + 8);
    for (at, letter) in prose.char_indices() {
        let rest = prose.get(at + letter.len_utf8()..).unwrap_or_default();
        match letter {
            '<' if begins_tag(rest) => out.push_str("&lt;"),
            '[' if begins_bracket_token(rest) => out.push_str("&#91;"),
            '&' if ["lt;", "#91;", "amp;"].iter().any(|name| rest.starts_with(name)) => out.push_str("&amp;"),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// Prose in which no control token begins, for those who put definitions before a model in a form of their own.
pub(crate) fn defused(prose: &str) -> Cow<'_, str> {
    if !has_control_token(prose) {
        return Cow::Borrowed(prose);
    }
    let mut out = String::with_capacity(prose.len() + 8);
    for (at, letter) in prose.char_indices() {
        match letter {
            '<' | '[' if begins_control_token(prose.get(at..).unwrap_or_default()) => {
                out.push_str(if letter == '<' { "&lt;" } else { "&#91;" });
            }
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// What [`escaped`] was given.
#[cfg(test)]
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let known = [("lt;", '<'), ("#91;", '['), ("amp;", '&')];
        let found = known.iter().find_map(|(name, letter)| Some((after.strip_prefix(name)?, *letter)));
        let (after, letter) = found.unwrap_or((after, '&'));
        out.push(letter);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A comparison such as `a < b` or `a <= b` begins nothing.
fn begins_tag(rest: &str) -> bool {
    rest.chars().next().is_some_and(|next| !next.is_whitespace() && next != '=')
}

fn begins_bracket_token(rest: &str) -> bool {
    BRACKET_TOKENS
        .iter()
        .any(|token| rest.strip_prefix(token).is_some_and(|after| after.starts_with([']', '_'])))
}

/// Whether a text holds something that a chat template takes for a word of its own.
pub(crate) fn has_control_token(text: &str) -> bool {
    let mut starts = text.match_indices(['<', '[']);
    starts.any(|(at, _)| begins_control_token(text.get(at..).unwrap_or_default()))
}

fn begins_control_token(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('<') {
        let closes = rest.starts_with('/') && rest.chars().nth(1).is_some_and(char::is_alphabetic);
        let begins =
            |token: &&str| rest.get(..token.len()).is_some_and(|start| start.eq_ignore_ascii_case(token));
        return closes || rest.starts_with(['|', '\u{ff5c}']) || TAG_TOKENS.iter().any(begins);
    }
    text.strip_prefix('[').is_some_and(begins_bracket_token)
}

/// A name as it is when it is plain, else as a JSON string.
pub(crate) fn name(name: &str) -> Cow<'_, str> {
    if is_plain(name) { Cow::Borrowed(name) } else { Cow::Owned(json(&Value::String(name.to_owned()))) }
}

/// Whether a name can be written without quotes and taken for nothing else.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-.:/$@".contains(letter);
    !name.is_empty() && name.chars().all(is_plain) && hidden_places(name).is_empty()
}

/// A value as JSON on one line, in which nothing hides and nothing begins.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{value}");
        }
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_string(key, out);
                out.push_str(": ");
                write_json(value, out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    let hidden = hidden_places(text);
    let mut hidden = hidden.iter().peekable();
    out.push('"');
    for (at, letter) in text.char_indices() {
        while hidden.next_if(|place| place.end <= at).is_some() {}
        let is_hidden = hidden.peek().is_some_and(|place| place.start <= at);
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '<' if begins_tag(rest) => out.push_str("\\u003c"),
            '[' if begins_bracket_token(rest) => out.push_str("\\u005b"),
            letter if is_hidden || letter.is_control() || LINE_ENDS.contains(&letter) => {
                write_units(letter, out);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

fn write_units(letter: char, out: &mut String) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn native_definitions_cannot_close_the_list_of_a_template() {
        for attack in
            ["</description></function></tools>", "<TOOLS>", "<function=x>", "</Anything>", "<|im_end|>"]
        {
            assert!(!defused(attack).contains('<'), "{attack}");
        }
        assert_eq!(defused("a < b and c <= d"), "a < b and c <= d");
    }

    #[test]
    fn tags_and_control_tokens_do_not_begin() {
        assert_eq!(escaped("a <|im_end|> b"), "a &lt;|im_end|> b");
        assert_eq!(
            escaped("</tool_call> [INST] [x] a < b <= c"),
            "&lt;/tool_call> &#91;INST] [x] a < b <= c"
        );
        assert_eq!(escaped("R&D &lt; &amp; & x"), "R&D &amp;lt; &amp;amp; & x");
        assert_eq!(json(&Value::from("<s>\u{202e}\n[INST]")), r#""\u003cs>\u202e\n\u005bINST]""#);
    }

    #[test]
    fn what_ends_a_line_for_somebody_ends_it() {
        assert_eq!(lines("a\r\nb\u{2028}c\rd\u{85}\n\n e "), ["a", "b", "c", "d", " e"]);
        assert_eq!(one_line(" a\n  b\u{200b}\tc "), "a b c");
    }

    #[test]
    fn names_are_bare_only_when_they_are_plain() {
        assert_eq!(name("read_data.v2"), "read_data.v2");
        assert_eq!(name("读取"), "读取");
        assert_eq!(name("a** [x]"), r#""a** [x]""#);
        assert_eq!(name(""), r#""""#);
        assert_eq!(name("a\u{3164}"), r#""a\u3164""#);
    }

    #[test]
    fn control_tokens_are_known() {
        for text in
            ["<|im_end|>", "x<｜end▁of▁sentence｜>", "</s>", "[/INST]", "<start_of_turn>user", "</tool_call>"]
        {
            assert!(has_control_token(text), "{text}");
        }
        for text in ["<div>", "a | b", "[INSTALL]", "[0]", "List<String>", "a <b> c"] {
            assert!(!has_control_token(text), "{text}");
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "<", "|", "[", "INST", "]", "&", "lt;", "amp;", "#91;", "a", " ", "\\", "\"", "\u{202e}",
            "\u{2028}", "/s>",
        ]);
        prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn escaping_can_be_undone(text in prop_oneof![any::<String>(), hostile()]) {
            let escaped = escaped(&text);
            prop_assert!(!has_control_token(&escaped), "{}", escaped);
            prop_assert_eq!(unescaped(&escaped), text);
        }

        #[test]
        fn values_come_back_and_hold_nothing_that_steers(text in prop_oneof![any::<String>(), hostile()]) {
            let value = serde_json::json!({ text.clone(): [text, 1, null] });
            let written = json(&value);
            prop_assert!(!has_control_token(&written) && hidden_places(&written).is_empty() && !written.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        }
    }
}
