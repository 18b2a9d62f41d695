//! Escapes untrusted text for prompts, so that it cannot pass for our own lines, tags or control tokens.
//!
//! Prose is quoted line by line with `> `, names appear bare only when they are plain, and values are JSON. In none of them
//! can `<` start a tag or `[` a control token of a chat template. `markup` and `json` are reversible.

use std::{borrow::Cow, fmt::Write as _};

use serde_json::Value;
use toolyard_core::{
    find_unsafe, sanitize,
    text::{NON_LF_LINE_BREAKS, normalize_line_breaks},
};

/// Characters of a name that are shown.
const MAX_NAME_CHARS: usize = 40;
/// Control tokens of chat templates written in brackets.
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
/// What follows `<` in tags by which chat templates and agents mark roles and tool calls, besides `<|`.
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

/// The non-empty lines of a text, sanitized.
pub(crate) fn sanitized_lines(text: &str) -> Vec<String> {
    let text = normalize_line_breaks(text).replace('\t', "    ");
    let (clean, _) = sanitize(&text);
    clean.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// The sanitized text on one line, with single spaces.
pub(crate) fn sanitized_line(text: &str) -> String {
    sanitized_lines(text).iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// Prefixes every line of an untrusted text with `> ` and escapes it.
pub(crate) fn quote(text: &str) -> String {
    let quoted: Vec<String> =
        sanitized_lines(text).iter().map(|line| format!("> {}", markup(line))).collect();
    quoted.join("\n")
}

/// Escapes markup, so that neither a tag nor a control token starts in the text.
pub(crate) fn markup(text: &str) -> Cow<'_, str> {
    escape(text, |rest| match rest.split_at_checked(1)? {
        ("<", after) if starts_tag(after) => Some("&lt;"),
        ("[", after) if starts_bracket_token(after) => Some("&#91;"),
        ("&", after) if ["lt;", "#91;", "amp;"].iter().any(|name| after.starts_with(name)) => Some("&amp;"),
        _ => None,
    })
}

/// Escapes only control tokens, for tool definitions that a provider formats itself.
pub(crate) fn control_tokens(text: &str) -> Cow<'_, str> {
    escape(text, |rest| match rest.as_bytes().first()? {
        b'<' if starts_control_token(rest) => Some("&lt;"),
        b'[' if starts_control_token(rest) => Some("&#91;"),
        _ => None,
    })
}

/// Replaces each character for which `replacement`, given the text from that character on, returns a replacement.
fn escape(text: &str, replacement: impl Fn(&str) -> Option<&'static str>) -> Cow<'_, str> {
    if !text.contains(['<', '[', '&']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (at, letter) in text.char_indices() {
        match replacement(text.get(at..).unwrap_or_default()) {
            Some(escaped) => out.push_str(escaped),
            None => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// Whether `<` followed by this text starts a tag; comparisons such as `a < b` and `a <= b` do not.
fn starts_tag(rest: &str) -> bool {
    rest.chars().next().is_some_and(|next| !next.is_whitespace() && next != '=')
}

fn starts_bracket_token(rest: &str) -> bool {
    BRACKET_TOKENS
        .iter()
        .any(|token| rest.strip_prefix(token).is_some_and(|after| after.starts_with([']', '_'])))
}

pub(crate) fn has_control_token(text: &str) -> bool {
    let mut starts = text.match_indices(['<', '[']);
    starts.any(|(at, _)| starts_control_token(text.get(at..).unwrap_or_default()))
}

fn starts_control_token(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('<') {
        let is_closing_tag = rest.starts_with('/') && rest.chars().nth(1).is_some_and(char::is_alphabetic);
        let starts_with =
            |token: &&str| rest.get(..token.len()).is_some_and(|start| start.eq_ignore_ascii_case(token));
        return is_closing_tag || rest.starts_with(['|', '\u{ff5c}']) || TAG_TOKENS.iter().any(starts_with);
    }
    text.strip_prefix('[').is_some_and(starts_bracket_token)
}

/// A plain name verbatim, any other as a JSON string.
pub(crate) fn name(name: &str) -> Cow<'_, str> {
    if is_plain_name(name) { Cow::Borrowed(name) } else { Cow::Owned(json(&Value::String(name.to_owned()))) }
}

/// Whether a name is unambiguous without quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-.:/$@".contains(letter);
    !name.is_empty() && name.chars().all(is_plain) && find_unsafe(name).is_empty()
}

/// A server-defined name as shown to users: bounded, unusual characters replaced.
pub(crate) fn display_name(name: &str) -> String {
    let replace_unusual =
        |letter: char| if letter.is_alphanumeric() || "_-.:/".contains(letter) { letter } else { '_' };
    let mut shown: String = name.chars().take(MAX_NAME_CHARS).map(replace_unusual).collect();
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// A value as escaped JSON on one line, without unsafe characters, tags or control tokens.
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
    let spans = find_unsafe(text);
    let mut spans = spans.iter().peekable();
    out.push('"');
    for (at, letter) in text.char_indices() {
        while spans.next_if(|span| span.end <= at).is_some() {}
        let is_unsafe = spans.peek().is_some_and(|span| span.start <= at);
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '<' if starts_tag(rest) => out.push_str("\\u003c"),
            '[' if starts_bracket_token(rest) => out.push_str("\\u005b"),
            letter if is_unsafe || letter.is_control() || NON_LF_LINE_BREAKS.contains(&letter) => {
                write_unicode_escape(letter, out);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

fn write_unicode_escape(letter: char, out: &mut String) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

#[cfg(test)]
pub(crate) use tests::unescape_markup;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_definition_cannot_close_the_tool_list_of_a_template() {
        for attack in
            ["</description></function></tools>", "<TOOLS>", "<function=x>", "</Anything>", "<|im_end|>"]
        {
            assert!(!control_tokens(attack).contains('<'), "{attack}");
        }
        assert_eq!(control_tokens("a < b and c <= d"), "a < b and c <= d");
    }

    #[test]
    fn tags_and_control_tokens_are_escaped() {
        assert_eq!(markup("a <|im_end|> b"), "a &lt;|im_end|> b");
        assert_eq!(markup("</tool_call> [INST] [x] a < b <= c"), "&lt;/tool_call> &#91;INST] [x] a < b <= c");
        assert_eq!(markup("R&D &lt; &amp; & x"), "R&D &amp;lt; &amp;amp; & x");
        assert_eq!(json(&Value::from("<s>\u{202e}\n[INST]")), r#""\u003cs>\u202e\n\u005bINST]""#);
    }

    #[test]
    fn every_line_terminator_ends_a_line() {
        assert_eq!(sanitized_lines("a\r\nb\u{2028}c\rd\u{85}\n\n e "), ["a", "b", "c", "d", " e"]);
        assert_eq!(sanitized_line(" a\n  b\u{200b}\tc "), "a b c");
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
    fn control_tokens_are_recognized() {
        for text in
            ["<|im_end|>", "x<｜end▁of▁sentence｜>", "</s>", "[/INST]", "<start_of_turn>user", "</tool_call>"]
        {
            assert!(has_control_token(text), "{text}");
        }
        for text in ["<div>", "a | b", "[INSTALL]", "[0]", "List<String>", "a <b> c"] {
            assert!(!has_control_token(text), "{text}");
        }
    }

    /// Reverts [`markup`].
    pub(crate) fn unescape_markup(text: &str) -> String {
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

    fn adversarial() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "<", "|", "[", "INST", "]", "&", "lt;", "amp;", "#91;", "a", " ", "\\", "\"", "\u{202e}",
            "\u{2028}", "/s>",
        ]);
        prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn escaping_is_reversible(text in prop_oneof![any::<String>(), adversarial()]) {
            let escaped = markup(&text);
            prop_assert!(!has_control_token(&escaped), "{}", escaped);
            prop_assert_eq!(unescape_markup(&escaped), text);
        }

        #[test]
        fn json_round_trips_and_contains_no_control_tokens(text in prop_oneof![any::<String>(), adversarial()]) {
            let value = serde_json::json!({ text.clone(): [text, 1, null] });
            let written = json(&value);
            prop_assert!(!has_control_token(&written) && find_unsafe(&written).is_empty() && !written.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        }
    }
}
