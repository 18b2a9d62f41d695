//! Finds the tool calls that a model wrote into its text.
//!
//! # Forms
//!
//! - `<tool_call>` at the start of a line, a JSON object with the tool's name and arguments, `</tool_call>`. One pair of tags may
//!   hold several objects. Such a call counts whatever tool it names, so that the model can be told that there is no such tool.
//! - The same JSON without tags as the whole reply, perhaps in a code block. It counts only for known tools and with arguments,
//!   because it may be data.
//!
//! The name is in `tool_name` or `name`, the arguments are in `arguments`; `id` and `source` are optional.
//!
//! # Text that is not a call
//!
//! - Quotations: a tag within a line, in code, a block quote or a comment, and JSON with other text around it.
//! - A tagged call after a line that announces an example (`for example`, `例如`, a heading `Example`).
//! - Calls with placeholders (`"..."`, `"<path>"`, a tool called `NAME`).
//! - Calls within reasoning or tool results, and after the model ended its turn or invented a tool result.
//! - Truncated calls, and calls whose JSON is invalid.
//!
//! This is not a security boundary: a model that was talked into a call can write it in any form. Whether a call is allowed is
//! decided where calls are executed.
//!
//! The time is linear in the length of the text.

mod call;
mod example;
mod markup;
mod scanner;
mod streaming;
mod visible_text;

use serde_json::{Map, Value};

use self::scanner::Scanner;
pub use self::{call::parse_arguments, streaming::StreamingParser};

/// A tool call in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedToolCall {
    /// The id that the model gave it.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The tool's source, if the model named one.
    pub source: Option<String>,
}

/// A parsed text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedText {
    /// The calls in their order.
    pub calls: Vec<ParsedToolCall>,
    /// The text without calls and reasoning.
    pub text: String,
    /// Whether the text ends within a call.
    pub truncated: bool,
    /// Complete tagged calls that cannot be parsed, as they were written.
    pub malformed: Vec<String>,
}

/// Finds the tool calls in a text. `is_tool` tells the names of known tools.
///
/// ```
/// use toolyard_model::tool_call_parser::parse_tool_calls;
///
/// let text = "Let me look.\n<tool_call>{\"tool_name\": \"get_time\", \"arguments\": {\"timezone\": \"Asia/Tokyo\"}}</tool_call>";
/// let parsed = parse_tool_calls(text, &|name| name == "get_time");
/// assert_eq!(parsed.text, "Let me look.");
/// assert_eq!(parsed.calls[0].arguments["timezone"], "Asia/Tokyo");
///
/// let parsed = parse_tool_calls("Write `<tool_call>{\"name\": \"get_time\"}</tool_call>` for that.", &|_| true);
/// assert!(parsed.calls.is_empty());
/// ```
pub fn parse_tool_calls(text: &str, is_tool: &dyn Fn(&str) -> bool) -> ParsedText {
    Scanner::new(text, is_tool).scan()
}

#[cfg(test)]
#[path = "tool_call_parser/tests.rs"]
mod tests;
