//! Chooses what fits into a budget: the core tools always, then the most relevant ones.
//!
//! Pieces are counted one by one, once for every form that is tried; only the whole is counted again.

use std::collections::HashSet;

use super::{details::Form, tool::PromptTool};
use crate::TokenCount;

/// How many tools in a row may be too large before nothing smaller is looked for.
const MISSES: usize = 8;

/// The tools that a prompt may show.
#[derive(Debug, Clone)]
pub struct Offer<I> {
    /// Tools that are always shown, in any order.
    pub core: Vec<PromptTool>,
    /// Other tools, the most relevant first. Only as many are asked for as there is room for.
    pub others: I,
    /// How many tools there are in all that the agent may use.
    pub exist: usize,
}

/// How large a prompt may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// In tokens.
    pub tokens: usize,
    /// At most so many tools besides the core ones.
    pub others: usize,
}

impl Limit {
    /// So many tokens, and as many tools as fit.
    pub fn of_tokens(tokens: usize) -> Self {
        Self { tokens, others: usize::MAX }
    }
}

/// A tool that a model is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The tool.
    pub tool: PromptTool,
    /// How much of it.
    pub form: Form,
    /// Whether it is always shown.
    pub core: bool,
}

/// What was chosen: the core tools by name, then the others in the order of their relevance.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) core: Vec<Shown>,
    pub(super) others: Vec<Shown>,
}

/// Chooses what fits into `room` tokens. `piece` is a tool as it will stand in the prompt, `None` where it cannot stand
/// there in that form.
pub(super) fn choose(
    offer: Offer<impl IntoIterator<Item = PromptTool>>,
    forms: &[Form],
    mut room: usize,
    most_others: usize,
    counter: &dyn TokenCount,
    piece: impl Fn(&PromptTool, Form) -> Option<String>,
) -> Chosen {
    let cost = |tool: &PromptTool, form: Form| piece(tool, form).map(|piece| counter.count(&piece));
    let mut chosen = Chosen { core: core_tools(offer.core, forms, &mut room, &cost), others: Vec::new() };
    let mut names: HashSet<String> = chosen.core.iter().map(|shown| shown.tool.name.clone()).collect();
    let mut misses = 0;
    for tool in offer.others {
        if misses >= MISSES || chosen.others.len() >= most_others {
            break;
        }
        if names.contains(&tool.name) {
            continue;
        }
        // A tool that nobody named is worth its room only with what it takes to call it.
        let usable = forms.iter().copied().filter(|form| *form <= Form::Compact);
        let fitting =
            usable.filter_map(|form| Some((form, cost(&tool, form)?))).find(|(_, cost)| *cost <= room);
        let Some((form, cost)) = fitting else {
            misses += 1;
            continue;
        };
        room -= cost;
        misses = 0;
        names.insert(tool.name.clone());
        chosen.others.push(Shown { tool, form, core: false });
    }
    chosen
}

/// All core tools in the longest form in which all of them fit; in the shortest, those that do.
fn core_tools(
    mut core: Vec<PromptTool>,
    forms: &[Form],
    room: &mut usize,
    cost: &impl Fn(&PromptTool, Form) -> Option<usize>,
) -> Vec<Shown> {
    core.sort_by(|one, other| one.name.cmp(&other.name));
    core.dedup_by(|one, other| one.name == other.name);
    let mut kept = Vec::new();
    for form in forms.iter().copied() {
        let mut left = *room;
        // A tool that cannot stand there at all is no reason to shorten the others.
        let costs = core.iter().enumerate().filter_map(|(at, tool)| Some((at, cost(tool, form)?)));
        kept.clear();
        let mut all_fit = true;
        for (at, cost) in costs {
            match left.checked_sub(cost) {
                Some(rest) => {
                    left = rest;
                    kept.push((at, form));
                }
                None => all_fit = false,
            }
            if !all_fit && Some(&form) != forms.last() {
                break;
            }
        }
        if all_fit || Some(&form) == forms.last() {
            *room = left;
            break;
        }
    }
    let mut kept = kept.into_iter().peekable();
    let tools = core.into_iter().enumerate();
    tools
        .filter_map(|(at, tool)| {
            let (_, form) = kept.next_if(|(kept, _)| *kept == at)?;
            Some(Shown { tool, form, core: true })
        })
        .collect()
}

impl Chosen {
    pub(super) fn len(&self) -> usize {
        self.core.len() + self.others.len()
    }

    /// Takes out the least relevant tools, and when there are no others the last core tools.
    pub(super) fn shrink(&mut self, count: usize) {
        let others = count.min(self.others.len());
        self.others.truncate(self.others.len() - others);
        self.core.truncate(self.core.len().saturating_sub(count - others));
    }
}
