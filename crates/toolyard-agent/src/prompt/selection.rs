//! Selects the tools that fit into a token budget: core tools first, then the most relevant ones.
//!
//! The text of each tool is counted once per detail level tried; only the final prompt is counted as a whole.

use std::collections::HashSet;

use super::{prompt_tool::PromptTool, tool_details::DetailLevel};
use crate::TokenCounter;

/// Consecutive tools that may not fit before the selection ends.
const MAX_CONSECUTIVE_MISSES: usize = 8;

/// The tools that a prompt may contain.
#[derive(Debug, Clone, Default)]
pub struct AvailableTools<I> {
    /// Tools that every prompt contains, in any order.
    pub core: Vec<PromptTool>,
    /// Other tools, the most relevant first. The iterator is consumed only as far as the budget allows.
    pub relevant: I,
    /// Number of all tools that the agent may use.
    pub total: usize,
}

/// Why a prompt could not be built.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptError {
    /// The instructions alone are larger than the room that the prompt has.
    ///
    /// Remedy: raise the budget, or shorten `instructions` of `[agents.NAME]`.
    #[error("a budget of {budget} tokens is too small: {needed} are needed before the first tool is shown")]
    BudgetTooSmall {
        /// The given budget.
        budget: usize,
        /// Tokens needed without any tool.
        needed: usize,
    },
}

/// The size limits of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptBudget {
    /// Tokens of the whole prompt.
    pub max_tokens: usize,
    /// Tools besides the core ones.
    pub max_relevant_tools: usize,
}

impl PromptBudget {
    /// A token limit without a limit on the number of tools.
    pub fn of_tokens(max_tokens: usize) -> Self {
        Self { max_tokens, max_relevant_tools: usize::MAX }
    }

    /// The budget left after `used` tokens of fixed text.
    pub(super) fn after(self, used: usize) -> Result<Self, PromptError> {
        let error = PromptError::BudgetTooSmall { budget: self.max_tokens, needed: used };
        Ok(Self { max_tokens: self.max_tokens.checked_sub(used).ok_or(error)?, ..self })
    }
}

/// A tool in a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedTool {
    /// The tool.
    pub tool: PromptTool,
    /// How much of the tool the prompt shows.
    pub detail: DetailLevel,
    /// Whether it is a core tool.
    pub is_core: bool,
}

/// The selected tools: core tools by name, the others by relevance.
#[derive(Debug, Default)]
pub(super) struct ToolSelection {
    pub(super) core: Vec<SelectedTool>,
    pub(super) relevant: Vec<SelectedTool>,
}

/// Selects the tools that fit into `budget`. `render` returns the text of a tool in the prompt, or `None` if it cannot be
/// shown at that level.
pub(super) fn select_tools(
    available: AvailableTools<impl IntoIterator<Item = PromptTool>>,
    levels: &[DetailLevel],
    mut budget: PromptBudget,
    counter: &dyn TokenCounter,
    render: impl Fn(&PromptTool, DetailLevel) -> Option<String>,
) -> ToolSelection {
    let cost = |tool: &PromptTool, level: DetailLevel| render(tool, level).map(|text| counter.count(&text));
    let tokens_left = &mut budget.max_tokens;
    let core = select_core_tools(available.core, levels, tokens_left, &cost);
    let mut names: HashSet<String> = core.iter().map(|selected| selected.tool.name.clone()).collect();
    let mut relevant = Vec::new();
    let mut misses = 0;
    for tool in available.relevant {
        if misses >= MAX_CONSECUTIVE_MISSES || relevant.len() >= budget.max_relevant_tools {
            break;
        }
        if names.contains(&tool.name) {
            continue;
        }
        // A tool outside the core is only useful with its parameters.
        let callable_levels = levels.iter().copied().filter(|level| *level <= DetailLevel::Compact);
        let fitting = callable_levels
            .filter_map(|level| Some((level, cost(&tool, level)?)))
            .find(|(_, cost)| *cost <= *tokens_left);
        let Some((detail, cost)) = fitting else {
            misses += 1;
            continue;
        };
        *tokens_left -= cost;
        misses = 0;
        names.insert(tool.name.clone());
        relevant.push(SelectedTool { tool, detail, is_core: false });
    }
    ToolSelection { core, relevant }
}

/// All core tools at the highest detail level at which all of them fit; at the lowest level, those that fit.
fn select_core_tools(
    mut core: Vec<PromptTool>,
    levels: &[DetailLevel],
    tokens_left: &mut usize,
    cost: &impl Fn(&PromptTool, DetailLevel) -> Option<usize>,
) -> Vec<SelectedTool> {
    core.sort_by(|one, other| one.name.cmp(&other.name));
    core.dedup_by(|one, other| one.name == other.name);
    let mut kept = Vec::new();
    for level in levels.iter().copied() {
        let is_last = Some(&level) == levels.last();
        let mut left = *tokens_left;
        // A tool that cannot be shown at this level does not lower the level of the others.
        let costs = core.iter().enumerate().filter_map(|(at, tool)| Some((at, cost(tool, level)?)));
        kept.clear();
        let mut all_fit = true;
        for (at, cost) in costs {
            match left.checked_sub(cost) {
                Some(rest) => {
                    left = rest;
                    kept.push((at, level));
                }
                None => all_fit = false,
            }
            if !all_fit && !is_last {
                break;
            }
        }
        if all_fit || is_last {
            *tokens_left = left;
            break;
        }
    }
    let mut kept = kept.into_iter().peekable();
    let tools = core.into_iter().enumerate();
    tools
        .filter_map(|(at, tool)| {
            let (_, detail) = kept.next_if(|(kept, _)| *kept == at)?;
            Some(SelectedTool { tool, detail, is_core: true })
        })
        .collect()
}

impl ToolSelection {
    pub(super) fn len(&self) -> usize {
        self.core.len() + self.relevant.len()
    }

    /// Assembles a prompt, with fewer tools until it fits. `assemble` returns the prompt and its size in tokens.
    pub(super) fn shrink_to_fit<P>(
        mut self,
        budget: PromptBudget,
        assemble: impl Fn(&Self) -> (P, usize),
    ) -> Result<P, PromptError> {
        let mut remove_count = 1;
        loop {
            let (prompt, tokens) = assemble(&self);
            match budget.after(tokens) {
                Ok(_) => return Ok(prompt),
                Err(error) if self.len() == 0 => return Err(error),
                Err(_) => self.shrink(remove_count),
            }
            remove_count *= 2;
        }
    }

    /// Removes `count` tools: the least relevant ones first, then the last core tools.
    fn shrink(&mut self, count: usize) {
        let relevant = count.min(self.relevant.len());
        self.relevant.truncate(self.relevant.len() - relevant);
        self.core.truncate(self.core.len().saturating_sub(count - relevant));
    }
}
