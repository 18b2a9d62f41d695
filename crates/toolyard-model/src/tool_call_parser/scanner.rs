//! Walks over a text once and separates calls from everything else.

use std::cell::Cell;

use super::{
    ParsedText,
    call_end::{BracketWord, match_bracket_word},
    call_object::{Interpretation, Markup, interpret_value},
    channel_message,
    code_block::{CodeBlock, CodeSpan, match_backticks, match_tildes},
    element::{Element, ParseContext},
    example_detection, function_tag,
    markdown_context::MarkdownContext,
    python_call, react_call, tagged_call,
    token::{TagMatch, Token, TokenKind, find_token, match_tag},
    visible_text::VisibleText,
};
use crate::lenient_json::{LenientJsonError, parse_prefix};

const OBSERVATION: &str = "Observation:";
/// How much of a truncated object is searched for the name of a tool.
const MAX_NAME_SEARCH_CHARS: usize = 400;

/// Scans a text, in one piece or in several.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    position: MarkdownContext,
    /// The result without its text.
    parsed: ParsedText,
    text: VisibleText,
    has_turn_ended: bool,
    /// The markup of the code block whose content is scanned; none outside of code blocks.
    block_markup: Option<Markup>,
}

impl Scanner {
    fn for_block(markup: Markup) -> Self {
        Self { block_markup: Some(markup), position: MarkdownContext::in_block(), ..Self::default() }
    }

    /// Scans as far as possible; returns the number of bytes used.
    pub(super) fn scan(&mut self, text: &str, context: ParseContext<'_>) -> usize {
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let element = if self.has_turn_ended {
                Element::Hidden(rest.len())
            } else {
                self.next_element(rest, context)
            };
            let Some(used) = self.consume(element, rest) else { break };
            at += used;
        }
        at
    }

    /// The visible text since the last time.
    pub(super) fn take_text(&mut self) -> String {
        self.text.take()
    }

    /// Whether a call was found, complete or not.
    pub(super) fn has_calls(&self) -> bool {
        !self.parsed.calls.is_empty() || !self.parsed.malformed.is_empty() || self.parsed.truncated
    }

    /// The result without its text.
    pub(super) fn into_parsed(self) -> ParsedText {
        self.parsed
    }

    /// Records an element and returns its length; `None` if it is incomplete.
    fn consume(&mut self, element: Element, text: &str) -> Option<usize> {
        let prefix = |used: usize| text.get(..used.min(text.len())).unwrap_or(text);
        let used = match element {
            Element::Incomplete => return None,
            Element::Text(used) | Element::Example(used) | Element::Block(used) => {
                let used = used.max(1);
                let prefix = prefix(used);
                self.text.push(prefix);
                match element {
                    Element::Example(_) => self.position.advance_example(prefix),
                    Element::Block(_) => self.position.advance_block(prefix),
                    _ => self.position.advance(prefix),
                }
                used
            }
            Element::Hidden(used) => {
                self.text.push_gap();
                used
            }
            Element::Calls(used, calls) => {
                self.parsed.calls.extend(calls);
                self.remove_call(prefix(used));
                used
            }
            Element::Malformed(used) => {
                self.parsed.malformed.push(prefix(used).trim().to_owned());
                self.remove_call(prefix(used));
                used
            }
            Element::Truncated(used) => {
                self.parsed.truncated = true;
                self.remove_call(prefix(used));
                used
            }
            Element::EndOfReasoning(used) => {
                self.parsed.calls.clear();
                self.parsed.malformed.clear();
                self.remove_call(prefix(used));
                used
            }
            Element::EndOfTurn => {
                self.has_turn_ended = true;
                text.len()
            }
        };
        Some(used.min(text.len()))
    }

    fn remove_call(&mut self, text: &str) {
        self.text.push_gap();
        self.position.advance_call(text);
    }

    fn next_element(&mut self, text: &str, context: ParseContext<'_>) -> Element {
        if self.position.is_line_quoted {
            return Element::Text(line_length(text));
        }
        if self.position.at_line_start
            && let Some(element) = self.match_line_start(text, context)
        {
            return element;
        }
        match text.as_bytes().first() {
            Some(b'`') => {
                let span = match_backticks(text, self.position.at_line_start, context);
                self.interpret_code(span, context)
            }
            Some(b'<') => self.match_tag(text, context),
            Some(b'{') => self.match_json(text, context),
            Some(b'[') => self.match_bracket(text, context),
            _ => {
                let is_special = |byte: u8| matches!(byte, b'\n' | b'`' | b'<' | b'{' | b'[');
                let end = text.bytes().position(is_special).unwrap_or(text.len());
                // The line break belongs to the text, so that the next element starts a line.
                let has_line_break = text.as_bytes().get(end) == Some(&b'\n');
                Element::Text(end + usize::from(has_line_break))
            }
        }
    }

    /// Matches elements that count at the start of a line only.
    fn match_line_start(&mut self, text: &str, context: ParseContext<'_>) -> Option<Element> {
        let line = text.trim_start_matches([' ', '\t']);
        let indentation = text.len() - line.len();
        if line.is_empty() && !context.is_final {
            return Some(Element::Incomplete);
        }
        if line.starts_with('>') || (!line.starts_with('\n') && self.position.is_indented_code(text)) {
            self.position.is_line_quoted = true;
            return Some(Element::Text(line_length(text)));
        }
        if indentation > 0 {
            return Some(Element::Text(indentation));
        }
        if line.starts_with('~') {
            let span = match_tildes(line, context)?;
            return Some(self.interpret_code(span, context));
        }
        // A tool result that the model invented.
        if !self.parsed.calls.is_empty() {
            if line.starts_with(OBSERVATION) {
                return Some(Element::EndOfTurn);
            }
            if OBSERVATION.starts_with(line) && !context.is_final {
                return Some(Element::Incomplete);
            }
        }
        if line.starts_with('A')
            && let Some(element) = react_call::match_action(line, context)
        {
            return Some(if self.position.is_block_example() { element.into_example() } else { element });
        }
        if self.position.at_start || self.block_markup.is_some() {
            return python_call::match_untagged(line, self.block_markup, context);
        }
        None
    }

    /// A code block is a call if it contains nothing but calls and is not an example.
    fn interpret_code(&self, span: CodeSpan<'_>, context: ParseContext<'_>) -> Element {
        let block = match span {
            CodeSpan::Other(element) => return element,
            CodeSpan::Block(block) => block,
        };
        let Some(markup) = block.markup().filter(|_| !self.position.is_in_block) else {
            return Element::Block(block.used);
        };
        let is_example = block.info.to_ascii_lowercase().contains("example")
            || self.position.is_block_example()
            || example_detection::refers_back_to_example(block.next_line);
        if is_example { Element::Example(block.used) } else { interpret_block(&block, markup, context) }
    }

    fn match_tag(&self, text: &str, context: ParseContext<'_>) -> Element {
        let token = match match_tag(text, context.is_final) {
            TagMatch::Incomplete => return Element::Incomplete,
            TagMatch::Unknown => return Element::Text(1),
            TagMatch::Token(token) => token,
        };
        let len = token.len;
        match token.kind {
            TokenKind::Call => {
                let element = tagged_call::match_call(text, &token, self.position.at_line_start, context);
                self.unless_tagged_example(element)
            }
            TokenKind::Function => {
                self.unless_tagged_example(function_tag::match_function(text, &token, context))
            }
            TokenKind::CallEnd if self.parsed.calls.is_empty() && self.parsed.malformed.is_empty() => {
                Element::Text(len)
            }
            TokenKind::CallEnd | TokenKind::Ignored => Element::Hidden(len),
            TokenKind::CallPart | TokenKind::ResultEnd => Element::Text(len),
            TokenKind::Reasoning if self.position.at_line_start => match_reasoning(text, &token, context),
            TokenKind::Reasoning => Element::Text(len),
            TokenKind::ReasoningEnd => Element::EndOfReasoning(len),
            TokenKind::Result if !self.parsed.calls.is_empty() && self.position.at_line_start => {
                Element::EndOfTurn
            }
            TokenKind::Result => match_result(text, len, context),
            TokenKind::TurnEnd if self.position.at_start && self.parsed.calls.is_empty() => {
                Element::Hidden(len)
            }
            TokenKind::TurnEnd => Element::EndOfTurn,
            TokenKind::Channel => channel_message::match_message(text, context),
            // An unterminated comment extends to the end, as in browsers.
            TokenKind::Comment => match text.find("-->") {
                Some(end) => Element::Text(end + 3),
                None => context.at_end(Element::Text(text.len())),
            },
        }
    }

    fn unless_tagged_example(&self, element: Element) -> Element {
        if self.position.is_tagged_example() { element.into_example() } else { element }
    }

    /// Matches a JSON value without tags, which is a call if it names a known tool.
    fn match_json(&self, text: &str, context: ParseContext<'_>) -> Element {
        let is_separate = self.position.at_line_start
            || self
                .position
                .last_char
                .is_none_or(|c| c.is_whitespace() || matches!(c, ':' | '：' | '。' | ')' | '）'));
        if !is_separate {
            return Element::Text(1);
        }
        let inner = text.get(1..).unwrap_or_default().trim_start();
        if inner.is_empty() && !context.is_final {
            return Element::Incomplete;
        }
        let may_be_call = match text.as_bytes().first() {
            Some(b'[') => inner.starts_with('{'),
            _ => inner.starts_with(['"', '\'', '“']) || inner.starts_with(|c: char| c.is_ascii_alphabetic()),
        };
        if !may_be_call {
            return Element::Text(1);
        }
        let markup = self.block_markup.unwrap_or(Markup::Untagged);
        match parse_prefix(text) {
            Ok((value, used)) => match interpret_value(&value, markup, context.is_tool) {
                Interpretation::Calls(_) if self.position.is_block_example() => Element::Example(used),
                Interpretation::Calls(calls) => Element::Calls(used, calls),
                // Calls within data are data.
                Interpretation::Example | Interpretation::NoCall => Element::Text(used),
            },
            Err(LenientJsonError::Incomplete) if !context.is_final => Element::Incomplete,
            Err(LenientJsonError::Incomplete)
                if names_tool(text, context) && !self.position.is_block_example() =>
            {
                Element::Truncated(text.len())
            }
            Err(LenientJsonError::Incomplete) => Element::Text(text.len()),
            Err(LenientJsonError::Invalid(at)) => Element::Text(at.max(1)),
        }
    }

    fn match_bracket(&self, text: &str, context: ParseContext<'_>) -> Element {
        match match_bracket_word(text, context.is_final) {
            Some(BracketWord::Incomplete) => Element::Incomplete,
            Some(BracketWord::Start(len)) => {
                self.unless_tagged_example(tagged_call::match_after_bracket_word(text, len, context))
            }
            Some(BracketWord::End(_)) if self.parsed.calls.is_empty() => Element::Text(1),
            Some(BracketWord::End(len)) => Element::Hidden(len),
            None => self.match_json(text, context),
        }
    }
}

fn interpret_block(block: &CodeBlock<'_>, markup: Markup, context: ParseContext<'_>) -> Element {
    let used = block.used;
    let mut scanner = Scanner::for_block(markup);
    let unterminated_calls = Cell::new(0);
    scanner.scan(
        block.content,
        ParseContext { is_final: true, unterminated_calls: &unterminated_calls, ..context },
    );
    let text = scanner.take_text();
    let is_comment =
        |line: &str| line.starts_with("//") || (block.info == "python" && line.starts_with("# "));
    let has_only_calls = text.lines().all(|line| line.trim().is_empty() || is_comment(line.trim()));
    let parsed = scanner.into_parsed();
    let are_known = parsed.calls.iter().all(|call| (context.is_tool)(&call.name));
    if !has_only_calls || (markup == Markup::Untagged && !are_known) {
        return Element::Block(used);
    }
    match parsed {
        parsed if parsed.truncated => Element::Truncated(used),
        parsed if !parsed.malformed.is_empty() => Element::Malformed(used),
        parsed if parsed.calls.is_empty() => Element::Block(used),
        parsed => Element::Calls(used, parsed.calls),
    }
}

/// The length of the first line with its line break.
fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

/// Matches reasoning up to its end tag, or to the end of the text.
fn match_reasoning(text: &str, open: &Token, context: ParseContext<'_>) -> Element {
    let end = find_token(text.get(open.len..).unwrap_or_default(), |token| {
        (token.kind == TokenKind::ReasoningEnd && token.tag == open.tag).then_some(token.len)
    });
    match end {
        Some((at, len)) => Element::Hidden(open.len + at + len),
        None => context.at_end(Element::Hidden(text.len())),
    }
}

/// Matches a tool result, which is text; calls in it do not count.
fn match_result(text: &str, open_len: usize, context: ParseContext<'_>) -> Element {
    let end_tag = |token: &Token| (token.kind == TokenKind::ResultEnd).then_some(token.len);
    match find_token(text.get(open_len..).unwrap_or_default(), end_tag) {
        Some((at, len)) => Element::Text(open_len + at + len),
        None => context.at_end(Element::Text(text.len())),
    }
}

fn names_tool(text: &str, context: ParseContext<'_>) -> bool {
    let start: String = text.chars().take(MAX_NAME_SEARCH_CHARS).collect();
    ["\"name\"", "\"tool_name\"", "\"tool\"", "\"function\"", "\"action\""].iter().any(|field| {
        let Some((_, after)) = start.split_once(field) else { return false };
        let name = after.trim_start().trim_start_matches(':').trim_start().strip_prefix('"');
        name.and_then(|name| name.split('"').next()).is_some_and(context.is_tool)
    })
}
