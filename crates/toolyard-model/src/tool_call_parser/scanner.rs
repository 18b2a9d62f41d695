//! Walks over a text once and separates calls from everything else.

use serde_json::Value;

use super::{
    ParsedText, ParsedToolCall,
    call::{Interpretation, has_arguments, interpret, truncated_name},
    example::announces_example,
    markup::{Tag, TagKind, find_tag_end, tag_at},
    visible_text::VisibleText,
};
use crate::json_text::{JsonTextError, parse_prefix};

const CALL_END: &str = "</tool_call>";
/// How a model that writes its reasoning as text introduces a tool result.
const OBSERVATION: &str = "Observation:";
/// Shorter runs of marks open no code block.
const MIN_FENCE_MARKS: usize = 3;
/// Longer runs of backticks are text.
const MAX_BACKTICKS: usize = 16;
/// Text that is indented further is code.
const MAX_INDENTATION: usize = 3;

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    is_tool: &'a dyn Fn(&str) -> bool,
    /// The result without its text.
    parsed: ParsedText,
    visible: VisibleText,
    at_line_start: bool,
    /// Whether only reasoning precedes, so that the rest may be a call without tags.
    is_reply_start: bool,
    /// Where the text that may announce an example starts.
    announcement_from: usize,
    under_example_heading: bool,
    /// Whether only whitespace follows the last example.
    after_example: bool,
    /// Whether no further end tag of a call follows.
    has_last_call_end: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, is_tool: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            text,
            at: 0,
            is_tool,
            parsed: ParsedText::default(),
            visible: VisibleText::default(),
            at_line_start: true,
            is_reply_start: true,
            announcement_from: 0,
            under_example_heading: false,
            after_example: false,
            has_last_call_end: false,
        }
    }

    pub(super) fn scan(mut self) -> ParsedText {
        while let Some(first) = self.rest().as_bytes().first() {
            let rest = self.rest();
            match first {
                _ if self.at_line_start => self.scan_line_start(rest),
                b'`' => self.scan_backticks(rest),
                b'<' => self.scan_markup(rest),
                _ => {
                    let end = rest.find(['\n', '`', '<']).unwrap_or(rest.len());
                    // The line break belongs to the text, so that the next element starts a line.
                    let has_line_break = rest.as_bytes().get(end) == Some(&b'\n');
                    self.pass_text(end + usize::from(has_line_break));
                }
            }
        }
        ParsedText { text: self.visible.take(), ..self.parsed }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves on by this number of bytes and returns them.
    fn advance(&mut self, bytes: usize) -> &'a str {
        let rest = self.rest();
        let passed = rest.get(..bytes).unwrap_or(rest);
        self.at += passed.len();
        passed
    }

    fn pass_text(&mut self, bytes: usize) {
        let passed = self.advance(bytes);
        self.visible.push(passed);
        self.at_line_start = passed.ends_with('\n');
        if !passed.trim().is_empty() {
            self.is_reply_start = false;
            self.after_example = false;
        }
    }

    /// Removes markup or a call from the visible text. The text after it counts as the start of a line.
    fn remove(&mut self, bytes: usize) {
        self.advance(bytes);
        self.visible.push_gap();
        self.at_line_start = true;
    }

    /// Removes a call; nothing before it announces what follows.
    fn remove_call(&mut self, bytes: usize) {
        self.remove(bytes);
        self.is_reply_start = false;
        self.announcement_from = self.at;
        self.under_example_heading = false;
        self.after_example = false;
    }

    /// Ignores the rest of the text.
    fn end_turn(&mut self) {
        self.remove(self.text.len());
    }

    fn scan_line_start(&mut self, rest: &str) {
        let line = rest.trim_start_matches([' ', '\t']);
        if self.is_reply_start && line.starts_with(['{', '[', '`']) && self.scan_json_reply(line) {
            return;
        }
        self.at_line_start = false;
        let indentation = rest.len() - line.len();
        if indentation > 0 {
            let is_code =
                indentation > MAX_INDENTATION || rest.get(..indentation).unwrap_or_default().contains('\t');
            self.pass_text(indentation);
            // A call in code is text. The start of a line may be passed for other markup.
            if is_code && line.starts_with('<') {
                match tag_at(line) {
                    Some(Tag { kind: TagKind::Call, len }) => self.pass_text(len),
                    _ => self.scan_markup(line),
                }
                return;
            }
        }
        if line.starts_with('>') {
            self.pass_text(line_length(line));
        } else if line.starts_with("~~~") {
            self.pass_code_block(line, '~');
        } else if line.starts_with(OBSERVATION) && !self.parsed.calls.is_empty() {
            self.end_turn();
        } else if line.starts_with('#') {
            let length = line_length(line);
            self.under_example_heading = announces_example(line.get(..length).unwrap_or_default());
        } else if let Some(tag) = tag_at(line) {
            self.scan_tag_at_line_start(line, tag);
        }
    }

    fn scan_tag_at_line_start(&mut self, line: &str, tag: Tag) {
        match tag.kind {
            TagKind::Call => self.scan_call(line, tag.len),
            TagKind::Reasoning => {
                let end = find_tag_end(line.get(tag.len..).unwrap_or_default(), TagKind::ReasoningEnd);
                // What was announced before the reasoning is announced after it.
                self.after_example |= self.is_announced_as_example();
                self.remove(end.map_or(line.len(), |end| tag.len + end));
                self.announcement_from = self.at;
            }
            TagKind::Result if !self.parsed.calls.is_empty() => self.end_turn(),
            _ => self.scan_markup(line),
        }
    }

    /// Scans markup that counts anywhere.
    fn scan_markup(&mut self, rest: &str) {
        if rest.starts_with("<!--") {
            // An unterminated comment extends to the end, as in browsers.
            return self.pass_text(rest.find("-->").map_or(rest.len(), |end| end + 3));
        }
        let Some(tag) = tag_at(rest) else { return self.pass_text(1) };
        match tag.kind {
            TagKind::Call | TagKind::Reasoning | TagKind::ResultEnd => self.pass_text(tag.len),
            TagKind::ReasoningEnd => {
                // Its start is in the prompt: all before was reasoning.
                self.parsed.calls.clear();
                self.parsed.malformed.clear();
                self.remove_call(tag.len);
                self.is_reply_start = true;
            }
            TagKind::Result => {
                let end = find_tag_end(rest.get(tag.len..).unwrap_or_default(), TagKind::ResultEnd);
                self.pass_text(end.map_or(rest.len(), |end| tag.len + end));
            }
            TagKind::TurnEnd if self.is_reply_start => self.remove(tag.len),
            TagKind::TurnEnd => self.end_turn(),
        }
    }

    /// Scans a code block or inline code, in which nothing counts.
    fn scan_backticks(&mut self, rest: &str) {
        let marks = rest.len() - rest.trim_start_matches('`').len();
        if marks > MAX_BACKTICKS {
            return self.pass_text(marks);
        }
        let line = rest.get(marks..line_length(rest)).unwrap_or_default();
        if marks >= MIN_FENCE_MARKS && !line.contains('`') {
            return self.pass_code_block(rest, '`');
        }
        self.pass_text(inline_code_length(rest, marks).unwrap_or(marks));
    }

    /// Passes a code block; `rest` starts with the marks that open it.
    fn pass_code_block(&mut self, rest: &str, mark: char) {
        let marks = rest.len() - rest.trim_start_matches(mark).len();
        let mut end = line_length(rest);
        for line in rest.get(end..).unwrap_or_default().split_inclusive('\n') {
            end += line.len();
            let line = line.trim();
            if line.len() >= marks && line.chars().all(|c| c == mark) {
                break;
            }
        }
        self.pass_text(end);
    }

    /// Scans a call; `rest` starts with its opening tag.
    fn scan_call(&mut self, rest: &str, tag_length: usize) {
        let is_example = self.under_example_heading || self.after_example || self.is_announced_as_example();
        let content = rest.get(tag_length..).unwrap_or_default();
        let (element, length) = self.read_call(content);
        let length = tag_length + length;
        match element {
            _ if is_example => self.pass_example(length),
            Element::Calls(calls) => {
                self.parsed.calls.extend(calls);
                self.remove_call(length);
            }
            Element::Example => self.pass_example(length),
            Element::Malformed => {
                let written = rest.get(..length).unwrap_or(rest).trim().to_owned();
                self.parsed.malformed.push(written);
                self.remove_call(length);
            }
            Element::Truncated => {
                self.parsed.truncated = true;
                self.remove_call(length);
            }
            Element::Text => self.pass_text(tag_length),
        }
    }

    /// A call right after an example is an example as well.
    fn pass_example(&mut self, length: usize) {
        self.pass_text(length);
        self.at_line_start = true;
        self.after_example = true;
    }

    /// Whether the last line with text announces an example.
    fn is_announced_as_example(&self) -> bool {
        let before = self.text.get(self.announcement_from..self.at).unwrap_or_default().trim_end();
        announces_example(before.rsplit('\n').next().unwrap_or_default())
    }

    /// Reads the content of a call. Returns its length with the end tag.
    fn read_call(&mut self, content: &str) -> (Element, usize) {
        let inside = content.trim_start();
        if inside.is_empty() {
            return (Element::Truncated, content.len());
        }
        let start = content.len() - inside.len();
        let error = match read_values(inside) {
            Ok((values, used)) => {
                let after = inside.get(used..).unwrap_or_default();
                let end_length = if after.is_empty() {
                    Some(0)
                } else {
                    after.strip_prefix(CALL_END).map(|_| CALL_END.len())
                };
                // Calls without end tag are complete where the text ends.
                if let Some(end_length) = end_length.filter(|_| !values.is_empty()) {
                    return (combine(&values), start + used + end_length);
                }
                JsonTextError::Invalid
            }
            Err(error) => error,
        };
        let end = if self.has_last_call_end { None } else { content.find(CALL_END) };
        self.has_last_call_end |= end.is_none();
        match end {
            Some(end) if content.get(..end).is_some_and(|inside| inside.trim().is_empty()) => {
                (Element::Text, 0)
            }
            Some(end) => (Element::Malformed, end + CALL_END.len()),
            None if !inside.starts_with(['{', '[']) => (Element::Text, 0),
            None if error == JsonTextError::Incomplete => (Element::Truncated, content.len()),
            None => (Element::Malformed, content.len()),
        }
    }

    /// Scans JSON without tags, which is a call if the rest of the text is nothing but calls of known tools. Returns whether
    /// it is one.
    fn scan_json_reply(&mut self, rest: &str) -> bool {
        let inside = rest.trim();
        let inside =
            inside.strip_prefix("```").map_or(inside, |block| block.strip_prefix("json").unwrap_or(block));
        let inside = inside.trim_start();
        if !inside.starts_with(['{', '[']) {
            return false;
        }
        let (values, used) = match read_values(inside) {
            Ok(read) => read,
            Err(JsonTextError::Incomplete)
                if truncated_name(inside).is_some_and(|name| (self.is_tool)(name)) =>
            {
                self.parsed.truncated = true;
                self.end_turn();
                return true;
            }
            Err(_) => return false,
        };
        let after = inside.get(used..).unwrap_or_default();
        let after = after.strip_prefix("```").unwrap_or(after).trim();
        let is_end = after.is_empty() || tag_at(after).is_some_and(|tag| tag.kind == TagKind::TurnEnd);
        match combine(&values) {
            Element::Calls(calls)
                if is_end
                    && values.iter().all(has_arguments)
                    && calls.iter().all(|call| (self.is_tool)(&call.name)) =>
            {
                self.parsed.calls.extend(calls);
                self.end_turn();
                true
            }
            _ => false,
        }
    }
}

/// What follows the opening tag of a call.
enum Element {
    Calls(Vec<ParsedToolCall>),
    Example,
    /// The call cannot be parsed.
    Malformed,
    /// The text ends within the call.
    Truncated,
    /// The text only mentions the tag.
    Text,
}

/// The JSON values at the start of a text, with whitespace between and after them, and the length of all.
fn read_values(text: &str) -> Result<(Vec<Value>, usize), JsonTextError> {
    let mut values = Vec::new();
    let mut used = 0;
    loop {
        let rest = text.get(used..).unwrap_or_default();
        let next = rest.trim_start();
        used += rest.len() - next.len();
        if !next.starts_with(['{', '[']) {
            return Ok((values, used));
        }
        let (value, length) = parse_prefix(next)?;
        values.push(value);
        used += length;
    }
}

fn combine(values: &[Value]) -> Element {
    let mut calls = Vec::new();
    for value in values {
        match interpret(value) {
            Interpretation::Calls(found) => calls.extend(found),
            Interpretation::Example => return Element::Example,
            Interpretation::NoCall => return Element::Malformed,
        }
    }
    Element::Calls(calls)
}

/// The length of the first line with its line break.
fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

/// The length of the inline code that this number of backticks opens; `None` if its paragraph does not close it.
fn inline_code_length(text: &str, marks: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = marks;
    loop {
        let start = at + memchr::memchr2(b'`', b'\n', bytes.get(at..)?)?;
        if bytes.get(start) == Some(&b'\n') {
            let next_line = text.get(start + 1..)?;
            if next_line.get(..line_length(next_line))?.trim().is_empty() {
                return None;
            }
            at = start + 1;
            continue;
        }
        let run = bytes.get(start..)?.iter().take_while(|byte| **byte == b'`').count();
        at = start + run;
        if run == marks {
            return Some(at);
        }
    }
}
