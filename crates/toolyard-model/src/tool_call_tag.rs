//! Tool calls that a model wrote into its text: `<tool_call>{…}</tool_call>`, and whatever else models write.
//!
//! # What is a call
//!
//! | form | whose |
//! |---|---|
//! | `<tool_call>`, `<tools>`, `<function_call>`, `<tool_use>` and the like around JSON, around `<function=…>`, around a name with `<arg_key>` | Hermes, Qwen, GLM |
//! | `<function=name>…</function>`, `<invoke name="…">…</invoke>` with JSON or parameters inside | Llama, Qwen Coder, Claude, MiniMax |
//! | <code>&lt;\|tool_call\|></code>, <code>&lt;\|python_tag\|></code>, <code>&lt;｜tool▁call▁begin｜></code> and their kin | Phi, Granite, Llama, DeepSeek, Kimi, Gemma |
//! | `[TOOL_CALLS]`, `[TOOL_REQUEST]` | Mistral, LM Studio |
//! | <code>&lt;\|channel\|>commentary to=functions.name …</code> | GPT-OSS |
//! | a block of code that is nothing but calls; a block named `tool_call` or `tool_code` | all |
//! | an object or a list of objects by itself, with a name and arguments | small models |
//! | `Action: name` and `Action Input: {…}`; `[name(key="value")]` as the whole answer | ReAct, Llama |
//!
//! Tags say that a call is meant, so that a tagged call counts whatever it names; all other forms count only for tools that
//! exist, and only with arguments.
//!
//! # What is none
//!
//! - What is quoted: inline code, block quotes (`>`), indented code, comments, a tag right after a quotation mark, blocks of
//!   code in a language, and blocks with anything beside calls in them.
//! - What the words before it call an example (`for example`, `would look like`, `例如`, a heading `Example`), and for
//!   blocks and untagged forms also a format, a syntax or a template; for blocks, the line after it too.
//! - What has blanks to be filled in: `"..."`, `"<path>"`, a tool called `NAME`; and what describes a tool.
//! - What stands within a thought, within data, within what a tool is said to have answered; and after the model has ended
//!   its turn or invented an answer itself.
//! - What is cut off. Brackets that are missing are only added where the end tag shows that nothing else is.
//!
//! Whoever wants to deceive this with words will: a model that was talked into a call makes it in plain form as well. What a
//! call may do is decided where calls are made.
//!
//! The time is linear in the length of the text, and nothing is followed deeper than 64 levels.

mod block;
mod example;
mod loose_json;
mod named;
mod python;
mod scanner;
mod shape;
mod splitter;
mod surroundings;
mod tagged;
mod token;

use std::cell::Cell;

use serde_json::{Map, Value};

use self::scanner::{Knowledge, Scanner};
pub use self::splitter::CallSplitter;

/// A call found in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCall {
    /// The model's name for it, if it gave one.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Where the model thinks the tool lives, if it said so.
    pub source: Option<String>,
}

/// What was found in a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextCalls {
    /// The calls in their order.
    pub calls: Vec<TextCall>,
    /// The text without them, and without thoughts.
    pub rest: String,
    /// Whether the text ends within a call, so that it could not be read.
    pub cut_off: bool,
    /// Tagged calls that are complete and cannot be read, as they were written, so that the model can be told.
    pub unreadable: Vec<String>,
}

/// Finds the calls in a text. Tagged calls count whatever they name; all other forms only if `is_tool` knows the name.
/// What is quoted as an example is never a call.
///
/// ```
/// use toolyard_model::tool_call_tag::read_calls;
///
/// let text = "Let me look.\n<tool_call>{'name': 'get_time', 'arguments': {'timezone': 'Asia/Tokyo',}}</tool_call>";
/// let found = read_calls(text, &|name| name == "get_time");
/// assert_eq!(found.rest, "Let me look.");
/// assert_eq!(found.calls[0].arguments["timezone"], "Asia/Tokyo");
///
/// let found = read_calls("Write `<tool_call>{\"name\": \"get_time\"}</tool_call>` for that.", &|_| true);
/// assert!(found.calls.is_empty());
/// ```
pub fn read_calls(text: &str, is_tool: &dyn Fn(&str) -> bool) -> TextCalls {
    let mut scanner = Scanner::default();
    scanner.run(text, Knowledge { is_tool, is_final: true, endless: &Cell::new(0) });
    let rest = scanner.shown();
    TextCalls { rest, ..scanner.into_found() }
}

/// Reads arguments as a model wrote them: an object in JSON or nearly so; nothing at all is the empty object.
pub fn read_arguments(text: &str) -> Option<Map<String, Value>> {
    shape::arguments_of_text(text)
}

#[cfg(test)]
#[path = "tool_call_tag_tests.rs"]
mod tests;
