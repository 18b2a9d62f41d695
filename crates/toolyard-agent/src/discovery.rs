//! The tools for a task: the core ones, then those that a search finds; and what a plan may name besides.

use std::{collections::HashMap, fmt, sync::Arc};

use toolyard_core::{RawJson, ResultForm, SourceId, SourceKind};
use toolyard_hub::{Snapshot, ToolCandidate, ToolHub};

use crate::{
    AgentConfig, KnownTools,
    prompt::{Offer, PromptTool},
};

/// So many tools are looked for: some of them the agent may not see.
const SEARCHED: usize = 100;
/// So many of those found are put before a planner, who takes as many as it has room for.
const RELEVANT: usize = 24;
/// What stands between the steps of a task.
const BREAKS: [&str; 16] = [
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
/// A part of a task that is shorter says nothing.
const SHORTEST_PART: usize = 4;
/// More parts are not looked for.
const MOST_PARTS: usize = 12;

/// How often calls succeeded, and how many there were, by tool and source.
pub type Rates = HashMap<(String, SourceId), (f64, f64)>;

/// The tools that an agent may be shown: with a request the most relevant first, without one all of them.
pub fn offer<'a>(
    agent: &'a AgentConfig,
    hub: &ToolHub,
    request: Option<&str>,
    rates: Rates,
) -> Offer<impl Iterator<Item = PromptTool> + use<'a>> {
    let may_see = |tool: &Arc<ToolCandidate>| agent.may_see(&tool.name, tool.source_id().as_str());
    let all: Vec<Arc<ToolCandidate>> = hub.specs().into_iter().filter(may_see).collect();
    let exist = all.len();
    let core = all.iter().filter(|tool| is_core(agent, tool)).map(|tool| shown(tool, &rates)).collect();
    let others = match request {
        Some(request) => relevant(hub, request).into_iter().filter(may_see).collect(),
        None => all,
    };
    let others = others.into_iter().filter(|tool| !is_core(agent, tool));
    Offer { core, others: others.map(move |tool| shown(&tool, &rates)), exist }
}

/// The tools for a task, as a planner takes them, with what is known of the looks of their results.
pub fn tools_for_task(
    agent: &AgentConfig,
    hub: &ToolHub,
    task: &str,
    rates: Rates,
    forms: &[ResultForm],
) -> Offer<Vec<PromptTool>> {
    let Offer { core, others, exist } = offer(agent, hub, Some(task), rates);
    let tools = AgentTools::new(agent, hub);
    let with_form = |tool: PromptTool| {
        let source = tools.find(tool.name()).map(|found| found.source_id());
        let known = forms.iter().find(|form| form.tool == tool.name() && Some(&form.source) == source);
        match known {
            Some(known) => tool.with_returns(known.form.as_str()),
            None => tool,
        }
    };
    let core = core.into_iter().map(with_form).collect();
    Offer { core, others: others.take(RELEVANT).map(with_form).collect(), exist }
}

fn is_core(agent: &AgentConfig, tool: &ToolCandidate) -> bool {
    agent.is_core(&tool.name, tool.source.info.kind == SourceKind::Native)
}

/// Tools in the order in which they matter for a request: what each of its parts finds, in turn. A model never names a
/// source, so those that only their source leads to are no use to it.
fn relevant(hub: &ToolHub, request: &str) -> Vec<Arc<ToolCandidate>> {
    let parts = parts(request);
    let found = if parts.len() < 2 {
        hub.search(request, SEARCHED)
    } else {
        hub.search_steps(request, &parts, SEARCHED)
    };
    found.into_iter().filter(|found| found.by_name).map(|found| found.tool).collect()
}

/// The parts of a task that read like steps of their own.
fn parts(request: &str) -> Vec<&str> {
    let mut parts = vec![request];
    for between in BREAKS {
        parts = parts.into_iter().flat_map(|part| part.split(between)).collect();
    }
    let says_something = |part: &&str| part.trim().chars().count() >= SHORTEST_PART;
    parts.into_iter().filter(says_something).take(MOST_PARTS).collect()
}

fn shown(tool: &ToolCandidate, rates: &Rates) -> PromptTool {
    let shown = PromptTool::of(tool);
    match rates.get(&(tool.name.to_string(), tool.source_id().clone())) {
        Some((rate, calls)) => shown.with_success(*rate, *calls),
        None => shown,
    }
}

/// All tools that an agent may use at this moment, whether they were shown or not.
#[derive(Clone)]
pub struct AgentTools<'a> {
    agent: &'a AgentConfig,
    snapshot: Arc<Snapshot>,
}

impl fmt::Debug for AgentTools<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTools").field("agent", &self.agent.name).finish_non_exhaustive()
    }
}

impl<'a> AgentTools<'a> {
    /// The tools of this agent.
    pub fn new(agent: &'a AgentConfig, hub: &ToolHub) -> Self {
        Self { agent, snapshot: hub.snapshot() }
    }

    /// The tool that a call by this name reaches first, if the agent may use it.
    pub fn find(&self, tool: &str) -> Option<&Arc<ToolCandidate>> {
        let found = self.snapshot.find(tool)?.used.first()?;
        let may_use = self.agent.capabilities.enable_tool_calling
            && self.agent.may_see(&found.name, found.source_id().as_str());
        may_use.then_some(found)
    }
}

impl KnownTools for AgentTools<'_> {
    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        self.find(tool).map(|found| found.spec().input_schema.clone())
    }

    fn nearest(&self, tool: &str) -> Option<String> {
        let near = self.snapshot.names_near(tool);
        near.into_iter().find(|name| self.find(name).is_some()).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_taken_apart_where_a_person_would() {
        assert_eq!(
            parts("read the sales column of test.xlsx, sum it and write the total into B12"),
            ["read the sales column of test.xlsx", "sum it", "write the total into B12"]
        );
        assert_eq!(parts("读取test.xlsx的销售额，求和然后写入B12"), ["读取test.xlsx的销售额", "写入B12"]);
        assert_eq!(parts("What time is it?"), ["What time is it?"]);
    }
}
