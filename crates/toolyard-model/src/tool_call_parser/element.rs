//! The elements that the parser finds in a text.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::{
    ParsedToolCall,
    call_object::{Interpretation, Markup, check_call, normalize_name},
};

/// The element at the front of a text, with its length in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Element {
    /// More text is needed to decide.
    Incomplete,
    Text(usize),
    /// Text that shows a call as an example.
    Example(usize),
    /// A code block that is no call. Text after it begins a new paragraph.
    Block(usize),
    /// Markup or reasoning, which is removed from the text.
    Hidden(usize),
    Calls(usize, Vec<ParsedToolCall>),
    /// A tagged call that cannot be parsed.
    Malformed(usize),
    /// A call that the end of the text cuts off.
    Truncated(usize),
    /// The end of reasoning whose start was not marked: calls before it do not count.
    EndOfReasoning(usize),
    /// Nothing counts from here on.
    EndOfTurn,
}

impl Element {
    /// A tagged call of `used` bytes whose name stands outside of its arguments.
    pub(super) fn named_call(
        used: usize,
        name: &str,
        arguments: Map<String, Value>,
        context: ParseContext<'_>,
    ) -> Self {
        let name = normalize_name(name, context.is_tool);
        let call = ParsedToolCall { id: None, name, arguments, source: None };
        match check_call(call, Markup::Tagged, context.is_tool) {
            Interpretation::Calls(calls) => Self::Calls(used, calls),
            Interpretation::Example => Self::Example(used),
            Interpretation::NoCall => Self::Malformed(used),
        }
    }

    pub(super) fn into_example(self) -> Self {
        match self {
            Self::Hidden(used) | Self::Calls(used, _) | Self::Malformed(used) | Self::Truncated(used) => {
                Self::Example(used)
            }
            other => other,
        }
    }
}

/// What the parser knows besides the text.
#[derive(Clone, Copy)]
pub(super) struct ParseContext<'a> {
    pub is_tool: &'a dyn Fn(&str) -> bool,
    /// Whether the text is complete.
    pub is_final: bool,
    /// Number of unterminated calls so far. Limited, because each is parsed up to the end of the text, which would make
    /// parsing quadratic.
    pub unterminated_calls: &'a Cell<u32>,
}

impl ParseContext<'_> {
    /// The element to report where the text ends: `at_end`, unless more text may follow.
    pub(super) fn at_end(self, at_end: Element) -> Element {
        if self.is_final { at_end } else { Element::Incomplete }
    }
}
