//! The tools an agent shows its model: core tools, and those that a search finds for the task.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolyard_core::{ArgumentExample, DataOwner, RawJson, ResultShape, SourceKind, ToolCallRequest};
use toolyard_hub::{NameTarget, RouteCase, Snapshot, ToolCandidate, ToolHub, definition_hash, route_within};

use crate::{
    AgentConfig, ToolCatalog, ToolPlaces,
    data_readers::add_data_readers,
    prompt::{AvailableTools, PromptTool},
    tool_access::ToolAccess,
};

/// More than are shown, because results that the agent cannot use are dropped.
const MAX_SEARCH_RESULTS: usize = 100;
/// Tools of one search of a planner.
const MAX_FOUND_TOOLS: usize = 6;
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

/// The tools an agent can use for the person at this machine: with a task the most relevant first, without one all of them. A
/// tool that is not a core tool is shown with its example, if there is one.
pub fn available_tools<'a>(
    agent: &'a AgentConfig,
    hub: &'a ToolHub,
    task: Option<&str>,
    examples: Vec<ArgumentExample>,
) -> AvailableTools<impl Iterator<Item = PromptTool> + use<'a>> {
    let access = ToolAccess::new(hub, None);
    let relevant = task.map(|task| relevant_tools(hub, access.data_owner(), task));
    with_relevant_tools(agent, hub, &access, relevant, examples)
}

/// Like [`available_tools`], with these relevant tools; `None` means all.
fn with_relevant_tools<'a>(
    agent: &'a AgentConfig,
    hub: &'a ToolHub,
    access: &ToolAccess,
    relevant: Option<Vec<Arc<ToolCandidate>>>,
    examples: Vec<ArgumentExample>,
) -> AvailableTools<impl Iterator<Item = PromptTool> + use<'a>> {
    let (snapshot, profile) = (hub.snapshot(), agent.tool_profile());
    let can_use = |tool: &Arc<ToolCandidate>| can_use(agent, access, &snapshot, tool);
    let all: Vec<Arc<ToolCandidate>> = hub.tools().into_iter().filter(can_use).collect();
    let relevant: Option<Vec<Arc<ToolCandidate>>> =
        relevant.map(|relevant| relevant.into_iter().filter(can_use).collect());
    let prompt_tool = move |tool: &ToolCandidate| {
        let name = snapshot.callable_name(tool, Some(&profile))?;
        let distinction = snapshot.distinction(tool, Some(&profile));
        Some(prompt_tool(tool, hub).called(&name, distinction.as_deref()))
    };
    let total = all.len();
    let core = all.iter().filter(|tool| is_core(agent, tool)).filter_map(|tool| prompt_tool(tool)).collect();
    let relevant = relevant.unwrap_or(all).into_iter().filter(|tool| !is_core(agent, tool));
    // Core tools begin every prompt; an example would change that beginning, which providers cache, with every call.
    let with_example = move |tool: Arc<ToolCandidate>| {
        let prompt_tool = prompt_tool(&tool)?;
        Some(match find_example(&tool, &examples) {
            Some(arguments) => prompt_tool.with_example(arguments),
            None => prompt_tool,
        })
    };
    AvailableTools { core, relevant: relevant.filter_map(with_example), total }
}

/// What was learned from earlier calls, as far as the one on whose behalf a run is may see it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolExperience {
    pub(crate) shapes: Vec<ResultShape>,
    pub(crate) examples: Vec<ArgumentExample>,
}

/// What tools are needed for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanningTask<'a> {
    pub(crate) question: &'a str,
    /// The words that the planner searched tools with, the oldest first.
    pub(crate) searches: &'a [String],
}

/// The tools for a task, with what is known from earlier calls. Those that the planner searched for come first.
pub(crate) fn tools_for_task(
    agent: &AgentConfig,
    hub: &ToolHub,
    access: &ToolAccess,
    task: PlanningTask<'_>,
    experience: &ToolExperience,
) -> AvailableTools<Vec<PromptTool>> {
    let (snapshot, owner) = (hub.snapshot(), access.data_owner());
    let can_use = |tool: &Arc<ToolCandidate>| can_use(agent, access, &snapshot, tool);
    let search = |words: &String| {
        let found: Vec<_> = relevant_tools(hub, owner, words).into_iter().filter(can_use).collect();
        found.into_iter().take(MAX_FOUND_TOOLS)
    };
    let found = task.searches.iter().rev().flat_map(search);
    let mut wanted: Vec<Arc<ToolCandidate>> = Vec::new();
    for tool in found.chain(relevant_tools(hub, owner, task.question)) {
        if !wanted.iter().any(|known| Arc::ptr_eq(known, &tool)) {
            wanted.push(tool);
        }
    }
    let AvailableTools { core, relevant, total } =
        with_relevant_tools(agent, hub, access, Some(wanted), experience.examples.clone());
    let tools = AgentTools::new(agent, hub);
    let with_shape = |tool: PromptTool| {
        let source = tools.find(tool.name()).map(|found| found.source_id().clone());
        let mut shapes = experience.shapes.iter();
        let shape = shapes.find(|shape| shape.tool == tool.name() && Some(&shape.source) == source.as_ref());
        match shape {
            Some(shape) => tool.with_result_shape(shape.shape.as_str()),
            None => tool,
        }
    };
    let core = core.into_iter().map(with_shape).collect();
    AvailableTools { core, relevant: relevant.take(MAX_RELEVANT_TOOLS).map(with_shape).collect(), total }
}

/// The arguments of the last successful call, unless the tool's definition has changed since.
fn find_example(tool: &ToolCandidate, examples: &[ArgumentExample]) -> Option<Value> {
    let is_of_tool =
        |example: &&ArgumentExample| *example.tool == *tool.name && example.source == *tool.source_id();
    let example = examples.iter().find(is_of_tool)?;
    (example.definition == definition_hash(tool.spec())).then(|| example.arguments.to_value())
}

/// Whether the agent may use the tool for this caller.
fn can_use(agent: &AgentConfig, access: &ToolAccess, snapshot: &Snapshot, tool: &ToolCandidate) -> bool {
    agent.can_use(&tool.name, tool.source_id().as_str()) && access.permits(agent, snapshot, tool)
}

fn is_core(agent: &AgentConfig, tool: &ToolCandidate) -> bool {
    agent.is_core(&tool.name, tool.source.info.kind == SourceKind::Native)
}

/// Tools by relevance: the best match of each part of the task, then the second best of each, and so on. Tools of one name
/// between which nobody decided follow each other, because the model chooses among them.
fn relevant_tools(hub: &ToolHub, owner: DataOwner, task: &str) -> Vec<Arc<ToolCandidate>> {
    let found = match search_texts(task).as_slice() {
        [only] => hub.search_for(owner, only, MAX_SEARCH_RESULTS),
        parts => hub.search_steps_for(owner, task, parts, MAX_SEARCH_RESULTS),
    };
    let snapshot = hub.snapshot();
    let mut tools: Vec<Arc<ToolCandidate>> = Vec::with_capacity(found.len());
    for found in found {
        let contenders = snapshot.contenders(&found.tool.name, None);
        let same =
            contenders.iter().filter(|other| found.duplicates.iter().any(|same| Arc::ptr_eq(same, other)));
        let shown = found.reachable_by_name || !contenders.is_empty();
        for tool in std::iter::once(&found.tool).filter(|_| shown).chain(same) {
            if !tools.iter().any(|known| Arc::ptr_eq(known, tool)) {
                tools.push(Arc::clone(tool));
            }
        }
    }
    add_data_readers(hub, owner, task, &mut tools);
    tools
}

/// The texts by which tools are searched for a task: its parts, or the whole task if it has fewer than two.
pub(crate) fn search_texts(task: &str) -> Vec<&str> {
    let parts = split_task(task);
    if parts.len() < 2 { vec![task] } else { parts }
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

fn prompt_tool(tool: &ToolCandidate, hub: &ToolHub) -> PromptTool {
    let prompt_tool = PromptTool::from_candidate(tool);
    match hub.success_rate(&tool.name, tool.source_id()) {
        Some(success) => prompt_tool.with_success_rate(success),
        None => prompt_tool,
    }
}

/// All tools an agent can use, whether its prompt shows them or not. A snapshot.
#[derive(Debug, Clone)]
pub struct AgentTools<'a> {
    agent: &'a AgentConfig,
    snapshot: Arc<Snapshot>,
    access: ToolAccess,
}

impl<'a> AgentTools<'a> {
    /// Takes a snapshot for an agent.
    pub fn new(agent: &'a AgentConfig, hub: &ToolHub) -> Self {
        Self { agent, snapshot: hub.snapshot(), access: ToolAccess::default() }
    }

    /// Suggests only tools that this caller may call.
    pub(crate) fn suggested_for(self, access: ToolAccess) -> Self {
        Self { access, ..self }
    }

    /// The tool that a call by this name reaches, if the agent can use it; none if the name is ambiguous.
    pub fn find(&self, tool: &str) -> Option<Arc<ToolCandidate>> {
        let found = match self.snapshot.resolve_name(tool, Some(&self.agent.tool_profile())) {
            NameTarget::Callable(candidates) => candidates.into_iter().next()?,
            NameTarget::Qualified(candidate) => candidate,
            NameTarget::Ambiguous(_) | NameTarget::Unknown => return None,
        };
        let may_use = self.agent.capabilities.enable_tool_calling
            && self.agent.can_use(&found.name, found.source_id().as_str());
        may_use.then_some(found)
    }
}

impl ToolCatalog for AgentTools<'_> {
    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        self.find(tool).map(|found| found.spec().input_schema.clone())
    }

    fn name_for_arguments(&self, tool: &str, arguments: &Map<String, Value>) -> Option<String> {
        let profile = self.agent.tool_profile();
        let request = ToolCallRequest::new(tool, Value::Object(arguments.clone()));
        let route = route_within(&self.snapshot, &request, Some(&profile)).ok()?;
        let selected = route.candidates.first().filter(|_| route.case == RouteCase::ByArguments)?;
        self.snapshot.callable_name(selected, Some(&profile)).map(|name| name.to_string())
    }

    fn places(&self, tool: &str) -> ToolPlaces {
        self.find(tool).map(|found| ToolPlaces::of(&found.source.info)).unwrap_or_default()
    }

    fn nearest(&self, tool: &str) -> Option<String> {
        let profile = self.agent.tool_profile();
        let is_permitted = |tool: &ToolCandidate| self.access.permits(self.agent, &self.snapshot, tool);
        if let NameTarget::Ambiguous(candidates) = self.snapshot.resolve_name(tool, Some(&profile)) {
            let first = candidates.iter().find(|candidate| is_permitted(candidate))?;
            return self.snapshot.callable_name(first, Some(&profile)).map(|name| name.to_string());
        }
        let near = self.snapshot.similar_names(tool);
        near.into_iter()
            .find(|name| self.find(name).is_some_and(|found| is_permitted(&found)))
            .map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_core::{
        BoxFuture, CallContext, ClaimTime, NameClaim, NameClaims, SourceInfo, SourceScope, Tool, ToolError,
        ToolOutput, ToolSpec,
    };

    use super::*;

    struct ClaimedTool(ToolSpec, NameClaim);

    impl Tool for ClaimedTool {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn name_claim(&self) -> Option<&NameClaim> {
            Some(&self.1)
        }

        fn call<'a>(
            &'a self,
            _: &'a ToolCallRequest,
            _: &'a CallContext,
        ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
            Box::pin(async { Ok(ToolOutput::text("done")) })
        }
    }

    /// Two servers of one program with different folders.
    fn two_instances() -> ToolHub {
        let (hub, mut claims) = (ToolHub::default(), NameClaims::default());
        for (id, folder) in [("files", "~/docs"), ("filesystem", "/data")] {
            let claim = claims.claim(&"read_file".into(), &id.into(), None, ClaimTime::FirstApproval, 1);
            let tool = ClaimedTool(ToolSpec::new("read_file", "Read a text file"), claim);
            let scope = SourceScope {
                program: Some("fs".to_owned()),
                folders: vec![folder.to_owned()],
                labels: vec![folder.to_owned()],
            };
            hub.register(SourceInfo::new(id, SourceKind::Mcp).scope(scope), vec![Arc::new(tool)]);
        }
        hub
    }

    #[test]
    fn a_model_chooses_between_tools_of_one_name_by_their_servers() {
        let (hub, agent) = (two_instances(), AgentConfig::new("clerk"));
        let shown = |agent: &AgentConfig| -> Vec<String> {
            let tools = available_tools(agent, &hub, Some("read the text of a file"), Vec::new());
            tools.relevant.map(|tool| tool.name().to_owned()).collect()
        };
        assert_eq!(shown(&agent), ["files.read_file", "filesystem.read_file"]);
        let tools = AgentTools::new(&agent, &hub);
        let source = |name: &str| tools.find(name).map(|tool| tool.source_id().to_string());
        assert_eq!(source("filesystem.read_file").as_deref(), Some("filesystem"));
        assert_eq!(source("read_file"), None);
        assert_eq!(tools.nearest("read_file").as_deref(), Some("files.read_file"));
        let named = |path: &str| {
            let arguments = json!({ "path": path });
            tools.name_for_arguments("read_file", arguments.as_object().unwrap())
        };
        assert_eq!(named("/data/x.csv").as_deref(), Some("filesystem.read_file"));
        assert_eq!(named("x.csv"), None);
        let restricted = AgentConfig { tools: vec!["*@filesystem".to_owned()], ..AgentConfig::new("clerk") };
        assert_eq!(shown(&restricted), ["read_file"], "an agent with one of them needs no source");
    }

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
        assert_eq!(search_texts("Sum it. Go"), ["Sum it. Go"], "one part only is long enough");
        assert_eq!(search_texts("sum it and save it"), ["sum it", "save it"]);
    }
}
