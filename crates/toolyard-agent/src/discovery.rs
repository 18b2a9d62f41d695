//! The tools an agent shows its model: core tools, and those that a search finds for the task.

use std::{collections::HashMap, sync::Arc};

use toolyard_core::{RawJson, ResultShape, SourceId, SourceKind};
use toolyard_hub::{Snapshot, ToolCandidate, ToolHub};

use crate::{
    AgentConfig, ToolCatalog,
    prompt::{AvailableTools, PromptTool},
};

/// More than are shown, because results that the agent cannot use are dropped.
const MAX_SEARCH_RESULTS: usize = 100;
/// A planner takes as many of these as fit its prompt.
const MAX_RELEVANT_TOOLS: usize = 24;
const STEP_SEPARATORS: [&str; 16] = [
    ". ",
    ", ",
    "; ",
    "\n",
    "。",
    "，",
    "；",
    "、",
    " and then ",
    " then ",
    " and ",
    "然后",
    "并且",
    "接着",
    "再",
    "并",
];
/// Shorter parts of a task are ignored.
const MIN_PART_CHARS: usize = 4;
/// Later parts of a task are ignored.
const MAX_PARTS: usize = 12;

/// Success rate (0 to 1) and number of calls (decayed over time), by tool and source.
pub type SuccessRates = HashMap<(String, SourceId), (f64, f64)>;

/// The tools an agent can use: with a task the most relevant first, without one all of them.
pub fn available_tools<'a>(
    agent: &'a AgentConfig,
    hub: &ToolHub,
    task: Option<&str>,
    rates: SuccessRates,
) -> AvailableTools<impl Iterator<Item = PromptTool> + use<'a>> {
    let can_use = |tool: &Arc<ToolCandidate>| agent.can_use(&tool.name, tool.source_id().as_str());
    let all: Vec<Arc<ToolCandidate>> = hub.specs().into_iter().filter(can_use).collect();
    let total = all.len();
    let core = all.iter().filter(|tool| is_core(agent, tool)).map(|tool| prompt_tool(tool, &rates)).collect();
    let relevant = match task {
        Some(task) => relevant_tools(hub, task).into_iter().filter(can_use).collect(),
        None => all,
    };
    let relevant = relevant.into_iter().filter(|tool| !is_core(agent, tool));
    AvailableTools { core, relevant: relevant.map(move |tool| prompt_tool(&tool, &rates)), total }
}

/// The tools for a task, with the shapes of their results as far as they are known.
pub(crate) fn tools_for_task(
    agent: &AgentConfig,
    hub: &ToolHub,
    task: &str,
    shapes: &[ResultShape],
) -> AvailableTools<Vec<PromptTool>> {
    let AvailableTools { core, relevant, total } =
        available_tools(agent, hub, Some(task), SuccessRates::new());
    let tools = AgentTools::new(agent, hub);
    let with_shape = |tool: PromptTool| {
        let source = tools.find(tool.name()).map(|found| found.source_id());
        let shape = shapes.iter().find(|shape| shape.tool == tool.name() && Some(&shape.source) == source);
        match shape {
            Some(shape) => tool.with_result_shape(shape.shape.as_str()),
            None => tool,
        }
    };
    let core = core.into_iter().map(with_shape).collect();
    AvailableTools { core, relevant: relevant.take(MAX_RELEVANT_TOOLS).map(with_shape).collect(), total }
}

fn is_core(agent: &AgentConfig, tool: &ToolCandidate) -> bool {
    agent.is_core(&tool.name, tool.source.info.kind == SourceKind::Native)
}

/// Tools by relevance: the best match of each part of the task, then the second best of each, and so on. Tools that match only
/// by their source are left out, because models do not name sources.
fn relevant_tools(hub: &ToolHub, task: &str) -> Vec<Arc<ToolCandidate>> {
    let parts = split_task(task);
    let found = if parts.len() < 2 {
        hub.search(task, MAX_SEARCH_RESULTS)
    } else {
        hub.search_steps(task, &parts, MAX_SEARCH_RESULTS)
    };
    found.into_iter().filter(|found| found.reachable_by_name).map(|found| found.tool).collect()
}

/// Splits a task where its steps seem to be.
fn split_task(task: &str) -> Vec<&str> {
    let mut parts = vec![task];
    for separator in STEP_SEPARATORS {
        parts = parts.into_iter().flat_map(|part| part.split(separator)).collect();
    }
    let is_long_enough = |part: &&str| part.trim().chars().count() >= MIN_PART_CHARS;
    parts.into_iter().filter(is_long_enough).take(MAX_PARTS).collect()
}

fn prompt_tool(tool: &ToolCandidate, rates: &SuccessRates) -> PromptTool {
    let prompt_tool = PromptTool::from_candidate(tool);
    match rates.get(&(tool.name.to_string(), tool.source_id().clone())) {
        Some((rate, calls)) => prompt_tool.with_success_rate(*rate, *calls),
        None => prompt_tool,
    }
}

/// All tools an agent can use, whether its prompt shows them or not. A snapshot.
#[derive(Debug, Clone)]
pub struct AgentTools<'a> {
    agent: &'a AgentConfig,
    snapshot: Arc<Snapshot>,
}

impl<'a> AgentTools<'a> {
    /// Takes a snapshot for an agent.
    pub fn new(agent: &'a AgentConfig, hub: &ToolHub) -> Self {
        Self { agent, snapshot: hub.snapshot() }
    }

    /// The preferred tool of this name, if the agent can use it.
    pub fn find(&self, tool: &str) -> Option<&Arc<ToolCandidate>> {
        let found = self.snapshot.find(tool)?.equivalents.first()?;
        let may_use = self.agent.capabilities.enable_tool_calling
            && self.agent.can_use(&found.name, found.source_id().as_str());
        may_use.then_some(found)
    }
}

impl ToolCatalog for AgentTools<'_> {
    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        self.find(tool).map(|found| found.spec().input_schema.clone())
    }

    fn nearest(&self, tool: &str) -> Option<String> {
        let near = self.snapshot.similar_names(tool);
        near.into_iter().find(|name| self.find(name).is_some()).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_split_into_their_steps() {
        assert_eq!(
            split_task("read the sales column of test.xlsx, sum it and write the total into B12"),
            ["read the sales column of test.xlsx", "sum it", "write the total into B12"]
        );
        assert_eq!(
            split_task("读取test.xlsx的销售额，求和然后写入B12"),
            ["读取test.xlsx的销售额", "写入B12"]
        );
        assert_eq!(split_task("What time is it?"), ["What time is it?"]);
    }
}
