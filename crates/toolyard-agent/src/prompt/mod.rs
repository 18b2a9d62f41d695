//! What a model is told: who it is, how tools are called, and which tools there are, within a budget.
//!
//! What stays the same from one request to the next stands first, so that providers' prompt caches hit: the fixed words
//! and the operator's instructions, the core tools by name, then the relevant ones by name, and the counts at the end.

mod call_schema;
mod choose;
mod details;
mod docstring;
mod example;
pub(crate) mod fence;
#[cfg(test)]
mod generate;
mod native;
#[cfg(test)]
mod parse;
mod schema_walk;
mod tool;
pub(crate) mod words;

use std::fmt::Write as _;

pub use call_schema::call_schema;
pub use choose::{Limit, Offer, Shown};
pub use details::{Form, format_tool_details};
pub use native::{NativePrompt, Provider, build_native_prompt};
pub use tool::PromptTool;

use self::{
    choose::{Chosen, choose},
    details::details,
    words::{Words, filled},
};
use crate::{AgentConfig, SEARCH_TOOLS, TokenCount};

/// With more tools than this besides the core ones, they stand under headings.
const MANY: usize = 12;

/// A system prompt and what is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The prompt itself.
    pub text: String,
    /// The tools in it, in their order.
    pub shown: Vec<Shown>,
    /// How many tools there are besides.
    pub left_out: usize,
    /// How large it is.
    pub tokens: usize,
}

/// Why there is no prompt.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptError {
    /// What must be said does not fit.
    #[error("a budget of {budget} tokens is too small: {needed} are needed before the first tool is shown")]
    TooSmall {
        /// What was given.
        budget: usize,
        /// What it takes without any tool.
        needed: usize,
    },
}

/// The system prompt of an agent with the tools it may call, for a model that calls them in its text. Never more than
/// the budget.
pub fn build_agent_system_prompt_with_tools(
    agent: &AgentConfig,
    offer: Offer<impl IntoIterator<Item = PromptTool>>,
    limit: Limit,
    counter: &dyn TokenCount,
) -> Result<Prompt, PromptError> {
    let Words { calling_heading, calling_form, calling_rules, tools_heading, tools_notice, .. } =
        Words::of(agent.language);
    let paragraphs = [*calling_heading, calling_form, calling_rules, tools_heading, tools_notice];
    build_with_paragraphs(agent, &paragraphs, offer, limit, counter)
}

/// The same with other words before the tools.
pub(crate) fn build_with_paragraphs(
    agent: &AgentConfig,
    paragraphs: &[&str],
    offer: Offer<impl IntoIterator<Item = PromptTool>>,
    limit: Limit,
    counter: &dyn TokenCount,
) -> Result<Prompt, PromptError> {
    let words = Words::of(agent.language);
    let mut prefix = opening(agent, words);
    if !agent.capabilities.enable_tool_calling || offer.exist == 0 {
        return without_tools(&prefix, limit, counter);
    }
    for paragraph in paragraphs {
        prefix.push_str(paragraph);
        prefix.push_str("\n\n");
    }
    let exist = offer.exist;
    let fixed = counter.count(&prefix) + counter.count(&closing(exist, exist, true, words));
    let room = limit
        .tokens
        .checked_sub(fixed)
        .ok_or(PromptError::TooSmall { budget: limit.tokens, needed: fixed })?;
    // The number before it depends on what else is chosen; this one is as long as any.
    let piece = |tool: &PromptTool, form: Form| Some(format!("999. {}", details(tool, form, words)));
    let mut chosen = choose(offer, &Form::ALL, room, limit.others, counter, piece);
    let mut less = 1;
    loop {
        let text = assembled(&prefix, &chosen, exist, words);
        let tokens = counter.count(&text);
        if tokens <= limit.tokens {
            let left_out = exist.saturating_sub(chosen.len());
            let shown = ordered(&chosen).into_iter().cloned().collect();
            return Ok(Prompt { text, shown, left_out, tokens });
        }
        if chosen.len() == 0 {
            return Err(PromptError::TooSmall { budget: limit.tokens, needed: tokens });
        }
        // The pieces fit, their sum did not: headings cost a little, and so does whatever a counter finds at the seams.
        chosen.shrink(less);
        less *= 2;
    }
}

fn without_tools(prefix: &str, limit: Limit, counter: &dyn TokenCount) -> Result<Prompt, PromptError> {
    let text = format!("{}\n", prefix.trim_end());
    let tokens = counter.count(&text);
    if tokens > limit.tokens {
        return Err(PromptError::TooSmall { budget: limit.tokens, needed: tokens });
    }
    Ok(Prompt { text, shown: Vec::new(), left_out: 0, tokens })
}

/// Who the agent is and what it is told by its operator.
pub(crate) fn opening(agent: &AgentConfig, words: &Words) -> String {
    let description = match agent.description.trim() {
        "" => words.default_description,
        description => description,
    };
    let mut text = filled(&filled(words.you_are, "name", &agent.name), "description", description);
    text.push_str("\n\n");
    let instructions = agent.instructions.trim();
    if !instructions.is_empty() {
        text.push_str(instructions);
        text.push_str("\n\n");
    }
    text
}

/// How many tools there are, and how to find those that are not shown.
fn closing(shown: usize, left_out: usize, searchable: bool, words: &Words) -> String {
    let mut text = match shown {
        0 => words.no_tools.to_owned(),
        1 => words.one_tool.to_owned(),
        shown => filled(words.many_tools, "count", &shown.to_string()),
    };
    if left_out > 0 {
        let sentence = if searchable { words.more_by_tool } else { words.more_by_command };
        let more = filled(&filled(sentence, "count", &left_out.to_string()), "tool", SEARCH_TOOLS);
        text.push(' ');
        text.push_str(&more);
    }
    text.push('\n');
    text
}

fn assembled(prefix: &str, chosen: &Chosen, exist: usize, words: &Words) -> String {
    let mut text = prefix.to_owned();
    let grouped = chosen.others.len() > MANY;
    let mut heading = None;
    for (at, shown) in ordered(chosen).into_iter().enumerate() {
        let group = shown.tool.group.as_deref().unwrap_or(words.other);
        if grouped && !shown.core && heading != Some(group) {
            // Writing to a string cannot fail.
            let _ = write!(text, "### {group}\n\n");
            heading = Some(group);
        }
        let _ = write!(text, "{}. {}", at + 1, details(&shown.tool, shown.form, words));
    }
    let left_out = exist.saturating_sub(chosen.len());
    text.push_str(&closing(chosen.len(), left_out, is_searchable(chosen), words));
    text
}

fn is_searchable(chosen: &Chosen) -> bool {
    chosen.core.iter().chain(&chosen.others).any(|shown| shown.tool.native && shown.tool.name == SEARCH_TOOLS)
}

/// The core tools, then the others by name; where there are many, by what they are good for first, and what is good for
/// nothing known last.
fn ordered(chosen: &Chosen) -> Vec<&Shown> {
    let grouped = chosen.others.len() > MANY;
    let mut others: Vec<&Shown> = chosen.others.iter().collect();
    others.sort_by_key(|shown| {
        let group = shown.tool.group.as_deref().filter(|_| grouped);
        (group.is_none(), group, shown.tool.name.as_str())
    });
    chosen.core.iter().chain(others).collect()
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;
