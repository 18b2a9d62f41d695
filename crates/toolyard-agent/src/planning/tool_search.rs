//! `search_tools`: how a model asks for tools that its prompt does not show. It is no tool of the hub: the driver asks again, with
//! the tools that were found.

use serde_json::{Value, json};
use toolyard_core::ToolSpec;

use super::plan::Plan;
use crate::{agent::SEARCH_TOOLS, prompt::PromptTool};

/// How often a model may search in one run.
pub(crate) const MAX_TOOL_SEARCHES: usize = 2;
const MAX_SEARCH_CHARS: usize = 200;

/// `search_tools` as a prompt shows it, with the number of tools that the prompt omits.
pub(super) fn search_tool(omitted: usize) -> PromptTool {
    let description = format!(
        "Find other tools by what they do: {omitted} more are not listed here. Use it alone, and only if no listed tool fits."
    );
    let spec = ToolSpec::new(SEARCH_TOOLS, description).with_input_schema(json!({
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }));
    PromptTool::native(&spec)
}

/// The words that a plan searches tools with, if it does.
pub(super) fn search_words(plan: &Plan) -> Option<String> {
    let step = plan.steps.iter().find(|step| step.tool_type == SEARCH_TOOLS)?;
    let query =
        step.arguments.get("query").or_else(|| step.arguments.values().find(|value| value.is_string()));
    let words = query.and_then(Value::as_str).unwrap_or(&step.description).trim();
    let words: String = words.chars().take(MAX_SEARCH_CHARS).collect();
    (!words.is_empty()).then_some(words)
}
