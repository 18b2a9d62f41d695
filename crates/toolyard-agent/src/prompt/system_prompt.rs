//! The system prompt of an agent with its tools, for models that call tools in their text.

use std::fmt::Write as _;

use super::{
    prompt_tool::PromptTool,
    selection::{AvailableTools, PromptBudget, PromptError, SelectedTool, ToolSelection, select_tools},
    templates::{SystemTemplates, fill},
    tool_details::{DetailLevel, format_details},
};
use crate::{AgentConfig, TokenCounter, agent::SEARCH_TOOLS};

/// With more tools than this besides the core ones, they are grouped under headings.
const MAX_UNGROUPED_TOOLS: usize = 12;

/// A system prompt and its contents.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The prompt.
    pub text: String,
    /// The tools in the prompt, in order.
    pub tools: Vec<SelectedTool>,
    /// Number of available tools that the prompt does not contain.
    pub omitted: usize,
    /// Size of the prompt in tokens.
    pub tokens: usize,
}

/// Builds the system prompt of an agent with its tools, for a model that calls tools in its text. The prompt never exceeds
/// the budget.
pub fn build_agent_system_prompt_with_tools(
    agent: &AgentConfig,
    available: AvailableTools<impl IntoIterator<Item = PromptTool>>,
    budget: PromptBudget,
    counter: &dyn TokenCounter,
) -> Result<Prompt, PromptError> {
    let SystemTemplates { calling_heading, call_format, calling_rules, tools_heading, tools_notice, .. } =
        SystemTemplates::of(agent.language);
    let paragraphs = [*calling_heading, call_format, calling_rules, tools_heading, tools_notice];
    build_with_paragraphs(agent, &paragraphs, available, budget, counter)
}

pub(crate) fn build_with_paragraphs(
    agent: &AgentConfig,
    paragraphs: &[&str],
    available: AvailableTools<impl IntoIterator<Item = PromptTool>>,
    budget: PromptBudget,
    counter: &dyn TokenCounter,
) -> Result<Prompt, PromptError> {
    let templates = SystemTemplates::of(agent.language);
    let mut prefix = introduction(agent, templates);
    if !agent.capabilities.enable_tool_calling || available.total == 0 {
        return prompt_without_tools(&prefix, budget, counter);
    }
    for paragraph in paragraphs {
        prefix.push_str(paragraph);
        prefix.push_str("\n\n");
    }
    let total = available.total;
    // An upper estimate, before it is known how many tools fit.
    let (selected, omitted, is_searchable) = (total, total, true);
    let notice = tool_count_notice(selected, omitted, is_searchable, templates);
    let tool_budget = budget.after(counter.count(&prefix) + counter.count(&notice))?;
    // The final number depends on the selection; this one is as long as any.
    let render = |tool: &PromptTool, level| Some(format!("999. {}", format_details(tool, level, templates)));
    let selection = select_tools(available, &DetailLevel::ALL, tool_budget, counter, render);
    // Group headings and token boundaries between tools are not part of the estimate.
    selection.shrink_to_fit(budget, |selection| {
        let text = assemble(&prefix, selection, total, templates);
        let tokens = counter.count(&text);
        let omitted = total.saturating_sub(selection.len());
        let tools = prompt_order(selection).into_iter().cloned().collect();
        (Prompt { text, tools, omitted, tokens }, tokens)
    })
}

fn prompt_without_tools(
    prefix: &str,
    budget: PromptBudget,
    counter: &dyn TokenCounter,
) -> Result<Prompt, PromptError> {
    let text = format!("{}\n", prefix.trim_end());
    let tokens = counter.count(&text);
    budget.after(tokens)?;
    Ok(Prompt { text, tools: Vec::new(), omitted: 0, tokens })
}

/// The agent's name, description and instructions.
pub(crate) fn introduction(agent: &AgentConfig, templates: &SystemTemplates) -> String {
    let description = match agent.description.trim() {
        "" => templates.default_description,
        description => description,
    };
    let mut text = fill(templates.you_are, &[("name", &agent.name), ("description", description)]);
    text.push_str("\n\n");
    let instructions = agent.instructions.trim();
    if !instructions.is_empty() {
        text.push_str(instructions);
        text.push_str("\n\n");
    }
    text
}

/// The number of tools, and how to find those that the prompt omits.
pub(super) fn tool_count_notice(
    selected: usize,
    omitted: usize,
    is_searchable: bool,
    templates: &SystemTemplates,
) -> String {
    let mut text = match selected {
        0 => templates.no_tools.to_owned(),
        1 => templates.one_tool.to_owned(),
        selected => fill(templates.many_tools, &[("count", &selected.to_string())]),
    };
    if omitted > 0 {
        let template = if is_searchable { templates.more_by_tool } else { templates.more_not_shown };
        text.push(' ');
        text.push_str(&fill(template, &[("count", &omitted.to_string()), ("tool", SEARCH_TOOLS)]));
    }
    text.push('\n');
    text
}

fn assemble(prefix: &str, selection: &ToolSelection, total: usize, templates: &SystemTemplates) -> String {
    let mut text = prefix.to_owned();
    let is_grouped = selection.relevant.len() > MAX_UNGROUPED_TOOLS;
    let mut heading = None;
    for (at, selected) in prompt_order(selection).into_iter().enumerate() {
        let group = selected.tool.group.as_deref().unwrap_or(templates.other_group);
        if is_grouped && !selected.is_core && heading != Some(group) {
            // Writing to a string cannot fail.
            let _ = write!(text, "### {group}\n\n");
            heading = Some(group);
        }
        let _ = write!(text, "{}. {}", at + 1, format_details(&selected.tool, selected.detail, templates));
    }
    let omitted = total.saturating_sub(selection.len());
    text.push_str(&tool_count_notice(selection.len(), omitted, has_search_tool(selection), templates));
    text
}

pub(super) fn has_search_tool(selection: &ToolSelection) -> bool {
    let mut tools = selection.core.iter().chain(&selection.relevant);
    tools.any(|selected| selected.tool.is_native && selected.tool.name == SEARCH_TOOLS)
}

/// Core tools, then the others by name; many tools are sorted by capability first, those without one last.
fn prompt_order(selection: &ToolSelection) -> Vec<&SelectedTool> {
    let is_grouped = selection.relevant.len() > MAX_UNGROUPED_TOOLS;
    let mut relevant: Vec<&SelectedTool> = selection.relevant.iter().collect();
    relevant.sort_by_key(|selected| {
        let group = selected.tool.group.as_deref().filter(|_| is_grouped);
        (group.is_none(), group, selected.tool.name.as_str())
    });
    selection.core.iter().chain(relevant).collect()
}
