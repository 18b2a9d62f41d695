//! Finds the tool calls that a model wrote into its text: `<tool_call>{…}</tool_call>` and many other formats.
//!
//! # Recognized formats
//!
//! | format | models |
//! |---|---|
//! | `<tool_call>`, `<tools>`, `<function_call>`, `<tool_use>` and similar tags around JSON, `<function=…>`, or a name with `<arg_key>` | Hermes, Qwen, GLM |
//! | `<function=name>…</function>`, `<invoke name="…">…</invoke>` around JSON or parameters | Llama, Qwen Coder, Claude, MiniMax |
//! | <code>&lt;\|tool_call\|></code>, <code>&lt;\|python_tag\|></code>, <code>&lt;｜tool▁call▁begin｜></code> and similar tokens | Phi, Granite, Llama, DeepSeek, Kimi, Gemma |
//! | `[TOOL_CALLS]`, `[TOOL_REQUEST]` | Mistral, LM Studio |
//! | <code>&lt;\|channel\|>commentary to=functions.name …</code> | GPT-OSS |
//! | a code block that contains nothing but calls, or whose language is `tool_call` or `tool_code` | all |
//! | a JSON object or a list of objects with name and arguments | small models |
//! | `Action: name` and `Action Input: {…}`; `[name(key="value")]` as the whole text | ReAct, Llama |
//!
//! Tagged calls count whatever tool they name. Calls in other formats count only with arguments and for known tools.
//!
//! # Text that is not a call
//!
//! - Quotations: inline code, block quotes (`>`), indented code, comments, a tag after a quotation mark, code blocks in
//!   another language, and code blocks with anything besides calls.
//! - Examples, if the text before says so (`for example`, `would look like`, `例如`, a heading `Example`); for code blocks and
//!   untagged calls also descriptions of a format, a syntax or a template; for code blocks also the line after.
//! - Calls with placeholders (`"..."`, `"<path>"`, a tool called `NAME`) and descriptions of tools.
//! - Calls within reasoning, data or tool results, and after the model ended its turn or invented a tool result.
//! - Truncated calls. Missing brackets are closed only if the end tag shows that nothing else is missing.
//!
//! This is not a security boundary: a model that was talked into a call can write it in any format. Whether a call is allowed
//! is decided where calls are executed.
//!
//! The time is linear in the length of the text, and nesting is limited to 64 levels.

mod call_end;
mod call_object;
mod channel_message;
mod code_block;
mod element;
mod example_detection;
mod function_tag;
mod json_call;
mod markdown_context;
mod name_first;
mod python_call;
mod react_call;
mod scanner;
mod streaming;
mod tagged_call;
mod token;
mod visible_text;

use std::cell::Cell;

use serde_json::{Map, Value};

pub use self::{call_object::parse_arguments, streaming::StreamingParser};
use self::{element::ParseContext, scanner::Scanner};

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
/// let text = "Let me look.\n<tool_call>{'name': 'get_time', 'arguments': {'timezone': 'Asia/Tokyo',}}</tool_call>";
/// let parsed = parse_tool_calls(text, &|name| name == "get_time");
/// assert_eq!(parsed.text, "Let me look.");
/// assert_eq!(parsed.calls[0].arguments["timezone"], "Asia/Tokyo");
///
/// let parsed = parse_tool_calls("Write `<tool_call>{\"name\": \"get_time\"}</tool_call>` for that.", &|_| true);
/// assert!(parsed.calls.is_empty());
/// ```
pub fn parse_tool_calls(text: &str, is_tool: &dyn Fn(&str) -> bool) -> ParsedText {
    let mut scanner = Scanner::default();
    scanner.scan(text, ParseContext { is_tool, is_final: true, unterminated_calls: &Cell::new(0) });
    let text = scanner.take_text();
    ParsedText { text, ..scanner.into_parsed() }
}

#[cfg(test)]
#[path = "tool_call_parser/tests.rs"]
mod tests;
