//! Tool definitions for models with native tool calling, in the format of OpenAI.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::{
    prompt_tool::PromptTool,
    schema::{arguments_schema, has_control_tokens, visit_schemas},
    selection::{AvailableTools, PromptBudget, PromptError, SelectedTool, ToolSelection, select_tools},
    system_prompt::{has_search_tool, introduction, tool_count_notice},
    templates::{SystemTemplates, fill},
    tool_details::DetailLevel,
};
use crate::{AgentConfig, TokenCounter, escape};

const MAX_NAME_CHARS: usize = 64;
/// The detail levels of a definition, which always has all parameters.
const DEFINITION_LEVELS: [DetailLevel; 3] = [DetailLevel::Full, DetailLevel::Compact, DetailLevel::Brief];
/// Schema keywords without use for a model.
const UNUSED_KEYWORDS: [&str; 4] = ["$schema", "$id", "$comment", "title"];

/// The system prompt and the tool definitions of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct NativePrompt {
    /// Fields of the request body.
    pub body: Value,
    /// The tools in the prompt, in order.
    pub tools: Vec<SelectedTool>,
    /// Number of available tools that the prompt does not contain.
    pub omitted: usize,
    /// Approximate size in tokens; providers format the definitions themselves.
    pub tokens: usize,
    /// Tool names by the alias that replaces a name the provider does not accept.
    pub aliases: BTreeMap<String, String>,
}

/// Builds the counterpart of [`super::build_agent_system_prompt_with_tools`] for a model with native tool calling.
pub fn build_native_prompt(
    agent: &AgentConfig,
    mut available: AvailableTools<impl IntoIterator<Item = PromptTool>>,
    budget: PromptBudget,
    counter: &dyn TokenCounter,
) -> Result<NativePrompt, PromptError> {
    let templates = SystemTemplates::of(agent.language);
    if !agent.capabilities.enable_tool_calling {
        available.total = 0;
    }
    let total = available.total;
    // An upper estimate, before it is known how many tools fit.
    let (selected, omitted, is_searchable) = (total, total, true);
    let fixed_tokens = counter.count(&system_message(agent, selected, omitted, is_searchable, templates));
    let tool_budget = budget.after(fixed_tokens)?;
    let selection = if total == 0 {
        ToolSelection::default()
    } else {
        let render =
            |tool: &PromptTool, level| Some(format!("{},", definition(tool, &tool.name, level, templates)?));
        select_tools(available, &DEFINITION_LEVELS, tool_budget, counter, render)
    };
    selection.shrink_to_fit(budget, |selection| {
        let prompt = assemble(agent, selection, total, counter);
        let tokens = prompt.tokens;
        (prompt, tokens)
    })
}

/// The introduction, the rules for calling tools, and the number of tools.
fn system_message(
    agent: &AgentConfig,
    selected: usize,
    omitted: usize,
    is_searchable: bool,
    templates: &SystemTemplates,
) -> String {
    let mut text = introduction(agent, templates);
    if selected + omitted > 0 {
        for paragraph in [templates.calling_heading, templates.calling_rules, templates.native_notice] {
            text.push_str(paragraph);
            text.push_str("\n\n");
        }
        text.push_str(&tool_count_notice(selected, omitted, is_searchable, templates));
    }
    text.trim_end().to_owned()
}

fn assemble(
    agent: &AgentConfig,
    selection: &ToolSelection,
    total: usize,
    counter: &dyn TokenCounter,
) -> NativePrompt {
    let omitted = total.saturating_sub(selection.len());
    let templates = SystemTemplates::of(agent.language);
    let system = system_message(agent, selection.len(), omitted, has_search_tool(selection), templates);
    let mut relevant: Vec<&SelectedTool> = selection.relevant.iter().collect();
    relevant.sort_by(|one, other| one.tool.name.cmp(&other.tool.name));
    let tools: Vec<SelectedTool> = selection.core.iter().chain(relevant).cloned().collect();
    let mut used_names = HashSet::new();
    let mut aliases = BTreeMap::new();
    let mut definitions = Vec::with_capacity(tools.len());
    for SelectedTool { tool, detail, .. } in &tools {
        let name = unique_native_name(&tool.name, &mut used_names);
        definitions.extend(definition(tool, &name, *detail, templates));
        if name != tool.name {
            aliases.insert(name, tool.name.clone());
        }
    }
    let tokens = counter.count(&system) + counter.count(&json!(definitions).to_string());
    let mut body = json!({"messages": [{"role": "system", "content": system}]});
    if let (Value::Object(fields), false) = (&mut body, definitions.is_empty()) {
        fields.insert("tools".to_owned(), json!(definitions));
    }
    NativePrompt { body, tools, omitted, tokens, aliases }
}

/// A tool's definition; none if its schema contains control tokens that cannot be escaped.
fn definition(
    tool: &PromptTool,
    name: &str,
    level: DetailLevel,
    templates: &SystemTemplates,
) -> Option<Value> {
    let description = match level {
        DetailLevel::Brief | DetailLevel::Name => tool.first_sentence(),
        DetailLevel::Full | DetailLevel::Plain | DetailLevel::Compact => tool.description(),
    };
    let mut description = escape::control_tokens(&description).into_owned();
    for line in experience_lines(tool, level, templates) {
        description.push('\n');
        description.push_str(&line);
    }
    let schema = native_schema(tool, level)?;
    Some(json!({
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }))
}

/// The arguments of a successful call, and the success rate of a tool that often fails.
fn experience_lines(tool: &PromptTool, level: DetailLevel, templates: &SystemTemplates) -> Vec<String> {
    let example = tool.learned_example().filter(|_| level == DetailLevel::Full);
    let percent = tool.bad_success_percent().filter(|_| level <= DetailLevel::Compact);
    let example = example.map(|example| format!("{}{}", templates.example, escape::json(example)));
    let rate = percent.map(|percent| fill(templates.success_rate, &[("percent", &percent.to_string())]));
    example.into_iter().chain(rate).collect()
}

/// A tool's input schema with sanitized descriptions; lower levels have none.
fn native_schema(tool: &PromptTool, level: DetailLevel) -> Option<Value> {
    let mut schema = arguments_schema(&tool.schema);
    describe_properties(&mut schema, tool);
    visit_schemas(&mut schema, &mut |keywords| {
        for keyword in UNUSED_KEYWORDS {
            if keywords.get(keyword).is_some_and(Value::is_string) {
                keywords.shift_remove(keyword);
            }
        }
        match keywords.get("description") {
            Some(Value::String(text)) if level == DetailLevel::Full => {
                let text = escape::control_tokens(&escape::sanitized_line(text)).into_owned();
                keywords.insert("description".to_owned(), json!(text));
            }
            Some(_) => {
                keywords.shift_remove("description");
            }
            None => {}
        }
        if level != DetailLevel::Full {
            keywords.shift_remove("examples");
        }
    });
    (!has_control_tokens(&schema)).then_some(schema)
}

/// Copies parameter descriptions found in the tool's description into the schema.
fn describe_properties(schema: &mut Value, tool: &PromptTool) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for param in &tool.params {
        if let (Some(Value::Object(keywords)), Some(text)) =
            (properties.get_mut(&param.name), &param.description)
        {
            keywords.insert("description".to_owned(), json!(text));
        }
    }
}

/// A unique name of the characters that providers accept: letters, digits, `_`, `-`.
fn unique_native_name(name: &str, used: &mut HashSet<String>) -> String {
    let is_accepted = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let plain: String = name
        .chars()
        .map(|letter| if is_accepted(letter) { letter } else { '_' })
        .take(MAX_NAME_CHARS)
        .collect();
    let plain = if plain.is_empty() { "_".to_owned() } else { plain };
    let mut unique = plain.clone();
    let mut number = 1;
    while !used.insert(unique.clone()) {
        number += 1;
        let suffix = format!("_{number}");
        let start: String = plain.chars().take(MAX_NAME_CHARS - suffix.len()).collect();
        unique = format!("{start}{suffix}");
    }
    unique
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
