//! Inline code and code blocks in Markdown.

use super::{
    call_object::Markup,
    element::{Element, ParseContext},
};

/// Languages of blocks that hold nothing but calls.
const CALL_LANGUAGES: [&str; 13] = [
    "tool_call",
    "tool_calls",
    "toolcall",
    "tool",
    "tools",
    "tool_code",
    "tool_use",
    "function_call",
    "function_calls",
    "function",
    "call",
    "action",
    "tool-call",
];
/// Languages of blocks that may hold calls.
const DATA_LANGUAGES: [&str; 12] =
    ["", "json", "json5", "jsonc", "jsonl", "ndjson", "xml", "text", "txt", "plaintext", "plain", "python"];
/// Shorter runs of backticks are inline code.
const MIN_FENCE_MARKS: usize = 3;
/// Longer runs of backticks are text.
const MAX_BACKTICKS: usize = 16;

/// What a run of backticks or tildes starts.
#[derive(Debug)]
pub(super) enum CodeSpan<'a> {
    /// Inline code or something else that cannot hold calls.
    Other(Element),
    Block(CodeBlock<'a>),
}

#[derive(Debug)]
pub(super) struct CodeBlock<'a> {
    /// The info string after the opening fence.
    pub info: &'a str,
    pub content: &'a str,
    /// The bytes of the block with its fences.
    pub used: usize,
    /// The first line after the block that is not blank.
    pub next_line: &'a str,
}

impl CodeBlock<'_> {
    /// How the block marks its content as calls; `None` if its language excludes calls.
    pub(super) fn markup(&self) -> Option<Markup> {
        match language(self.info).as_str() {
            language if CALL_LANGUAGES.contains(&language) => Some(Markup::Tagged),
            language if DATA_LANGUAGES.contains(&language) => Some(Markup::Untagged),
            _ => None,
        }
    }
}

fn language(info: &str) -> String {
    info.split([' ', '{', ',']).next().unwrap_or_default().to_ascii_lowercase()
}

pub(super) fn match_backticks<'a>(
    text: &'a str,
    at_line_start: bool,
    context: ParseContext<'_>,
) -> CodeSpan<'a> {
    let run_length = text.len() - text.trim_start_matches('`').len();
    if run_length == text.len() && !context.is_final {
        return CodeSpan::Other(Element::Incomplete);
    }
    if (MIN_FENCE_MARKS..=MAX_BACKTICKS).contains(&run_length) {
        return match_fence(text, run_length, '`', at_line_start, context);
    }
    CodeSpan::Other(if run_length > MAX_BACKTICKS {
        Element::Text(run_length)
    } else {
        match find_closing_run(text, run_length) {
            // More backticks would make another run of it.
            Closing::At(end) if end == text.len() => context.at_end(Element::Text(end)),
            Closing::At(end) => Element::Text(end),
            Closing::Missing => Element::Text(run_length),
            Closing::Incomplete => context.at_end(Element::Text(run_length)),
        }
    })
}

/// Matches a line that starts with a tilde; `None` if that is not a fence.
pub(super) fn match_tildes<'a>(text: &'a str, context: ParseContext<'_>) -> Option<CodeSpan<'a>> {
    let run_length = text.len() - text.trim_start_matches('~').len();
    if run_length == text.len() && !context.is_final {
        return Some(CodeSpan::Other(Element::Incomplete));
    }
    let at_line_start = true;
    (run_length >= MIN_FENCE_MARKS).then(|| match_fence(text, run_length, '~', at_line_start, context))
}

enum Closing {
    At(usize),
    /// The paragraph ends before.
    Missing,
    /// The text ends before.
    Incomplete,
}

/// Finds the run of exactly `run_length` backticks that closes the one at the front of the text.
fn find_closing_run(text: &str, run_length: usize) -> Closing {
    let bytes = text.as_bytes();
    let mut at = run_length;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'`', b'\n', rest)) {
        let start = at + found;
        let rest = bytes.get(start..).unwrap_or_default();
        if rest.first() == Some(&b'\n') {
            // A blank line ends the paragraph.
            let spaces = rest.iter().skip(1).take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            if rest.get(1 + spaces) == Some(&b'\n') {
                return Closing::Missing;
            }
            at = start + 1;
            continue;
        }
        let length = rest.iter().take_while(|byte| **byte == b'`').count();
        if length == run_length {
            return Closing::At(start + length);
        }
        at = start + length;
    }
    Closing::Incomplete
}

fn match_fence<'a>(
    text: &'a str,
    run_length: usize,
    mark: char,
    at_line_start: bool,
    context: ParseContext<'_>,
) -> CodeSpan<'a> {
    let after = text.get(run_length..).unwrap_or_default();
    let Some(line_end) = memchr::memchr2(b'\n', b'`', after.as_bytes()) else {
        return CodeSpan::Other(context.at_end(Element::Text(run_length)));
    };
    let line = after.get(..line_end).unwrap_or_default();
    if after.as_bytes().get(line_end) == Some(&b'`') {
        return CodeSpan::Other(match find_closing_run(text, run_length) {
            _ if mark != '`' => Element::Text(run_length),
            Closing::At(end) if end == text.len() && !context.is_final => Element::Incomplete,
            Closing::At(end) if !at_line_start => Element::Text(end),
            Closing::At(end) => return match_one_line(text, run_length, end, context),
            Closing::Incomplete => context.at_end(Element::Text(run_length)),
            Closing::Missing => Element::Text(run_length),
        });
    }
    let info = line.trim();
    let start = run_length + line_end + 1;
    let language = language(info);
    let closes_anywhere =
        CALL_LANGUAGES.contains(&language.as_str()) || language.starts_with("json") || language.is_empty();
    let Some((content_end, end)) = find_closing_fence(text, start, run_length, mark, closes_anywhere) else {
        if !context.is_final {
            return CodeSpan::Other(Element::Incomplete);
        }
        let content = text.get(start..).unwrap_or_default();
        return CodeSpan::Block(CodeBlock { info, content, used: text.len(), next_line: "" });
    };
    let content = text.get(start..content_end).unwrap_or_default();
    complete_block(text, info, content, end, context)
}

/// The end of a block's content and of the block. If `closes_anywhere`, the fence may stand at the end of the last line.
fn find_closing_fence(
    text: &str,
    start: usize,
    run_length: usize,
    mark: char,
    closes_anywhere: bool,
) -> Option<(usize, usize)> {
    let mut at = start;
    for line in text.get(start..)?.split_inclusive('\n') {
        let trimmed = line.trim_end();
        let marks = trimmed.len() - trimmed.trim_end_matches(mark).len();
        let content = trimmed.get(..trimmed.len() - marks).unwrap_or_default();
        if marks >= run_length && (closes_anywhere || content.trim().is_empty()) {
            return Some((at + content.len(), at + trimmed.len()));
        }
        at += line.len();
    }
    None
}

/// A block on one line, whose first word may be its language.
fn match_one_line<'a>(
    text: &'a str,
    run_length: usize,
    end: usize,
    context: ParseContext<'_>,
) -> CodeSpan<'a> {
    let inside = text.get(run_length..end - run_length).unwrap_or_default();
    let language_end = inside.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inside.len());
    let (info, content) = inside.split_at(language_end);
    complete_block(text, info, content, end, context)
}

/// Adds the line after the block, which may call the block an example.
fn complete_block<'a>(
    text: &'a str,
    info: &'a str,
    content: &'a str,
    used: usize,
    context: ParseContext<'_>,
) -> CodeSpan<'a> {
    let after = text.get(used..).unwrap_or_default().trim_start();
    match after.find('\n') {
        None if !context.is_final => CodeSpan::Other(Element::Incomplete),
        end => {
            let next_line = after.get(..end.unwrap_or(after.len())).unwrap_or_default();
            CodeSpan::Block(CodeBlock { info, content, used, next_line })
        }
    }
}
