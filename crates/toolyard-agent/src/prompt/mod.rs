//! Prompts: the system prompt with the tools of an agent, within a token budget.
//!
//! Parts that stay the same between requests come first, so that providers' prompt caches hit: fixed texts and the
//! operator's instructions, core tools by name, relevant tools by name, counts at the end.
//!
//! | file | purpose |
//! |---|---|
//! | `system_prompt.rs` | the prompt for models that call tools in their text |
//! | `native.rs` | tool definitions for models with native tool calling |
//! | `selection.rs` | which tools fit into the budget, and in how much detail |
//! | `prompt_tool.rs`, `docstring.rs`, `example_arguments.rs` | one tool: sanitized, bounded, with an example |
//! | `tool_details.rs` | the text of one tool |
//! | `templates/` | the fixed texts, per language |

mod docstring;
mod example_arguments;
mod native;
mod prompt_tool;
mod schema;
mod selection;
mod system_prompt;
pub(crate) mod templates;
mod tool_details;

#[cfg(test)]
mod tests;

pub(crate) use self::system_prompt::{build_with_paragraphs, introduction};
pub use self::{
    native::{NativePrompt, build_native_prompt},
    prompt_tool::PromptTool,
    selection::{AvailableTools, PromptBudget, PromptError, SelectedTool},
    system_prompt::{Prompt, build_agent_system_prompt_with_tools},
    tool_details::{DetailLevel, format_tool_details},
};
