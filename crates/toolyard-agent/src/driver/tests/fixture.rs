//! The fixture of a test: fake tools, a scripted model, and a log in memory.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, RunId, SourceInfo, SourceKind, SourceScope, Tool, ToolCallRequest,
    ToolError, ToolHints, ToolOutput, ToolSpec, telemetry::RecordingTelemetry,
};
use toolyard_hub::{HubConfig, ToolHub};
use toolyard_model::{Model, ModelError, ModelErrorKind, ModelReply, ScriptedModel, ToolCalling};

use crate::{
    Agent, AgentConfig, AgentParts, ApprovalDecision, ApprovalRequest, ApprovalRules, CancelToken,
    MemoryRunLog, NoWatcher, O200k, RunEnd, RunEvent, RunRequest, RunUpdate, RunWatcher, StepEnd, load_run,
    replay_updates,
};

/// What a fake tool does.
#[derive(Debug, Clone)]
pub(crate) enum Behavior {
    /// Returns this value.
    Return(Value),
    /// Returns its arguments.
    Echo,
    /// Returns this output.
    Output(ToolOutput),
    /// Fails with this kind of error.
    Fail(ErrorKind),
    /// Fails with this message.
    FailWith(String),
    /// Fails without this argument, else returns its arguments.
    Require(&'static str),
    /// Refuses a relative path in its argument `filepath`, else returns its arguments.
    RequireAbsolutePath,
    /// Returns its arguments after a delay, its argument `milliseconds`.
    Sleep,
    /// Never returns.
    Hang,
}

/// A fake tool.
#[derive(Debug, Clone)]
pub(crate) struct TestTool {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    /// Folders that the settings of its source name.
    pub(crate) folders: &'static [&'static str],
    pub(crate) read_only: bool,
    pub(crate) open_world: Option<bool>,
    pub(crate) capability: Option<&'static str>,
    /// Names of its parameters; any are accepted if there are none.
    pub(crate) parameters: &'static [&'static str],
    pub(crate) delay: Duration,
    pub(crate) behavior: Behavior,
    pub(crate) description: String,
}

/// A read-only tool that returns at once.
pub(crate) fn tool(name: &'static str, behavior: Behavior) -> TestTool {
    let description = format!("The tool {name}");
    TestTool {
        name,
        source: "local",
        folders: &[],
        read_only: true,
        open_world: None,
        capability: None,
        parameters: &[],
        delay: Duration::ZERO,
        behavior,
        description,
    }
}

pub(crate) fn failing(name: &'static str, kind: ErrorKind) -> TestTool {
    tool(name, Behavior::Fail(kind))
}

impl TestTool {
    pub(crate) fn with_delay_ms(mut self, milliseconds: u64) -> Self {
        self.delay = Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn writes(mut self) -> Self {
        self.read_only = false;
        self
    }

    /// A tool that is declared to pass its arguments outside.
    pub(crate) fn sends_outside(mut self, parameters: &'static [&'static str]) -> Self {
        (self.open_world, self.parameters) = (Some(true), parameters);
        self
    }

    /// A tool that is declared to pass its arguments to nobody.
    pub(crate) fn keeps_inside(mut self) -> Self {
        self.open_world = Some(false);
        self
    }

    pub(crate) fn with_capability(mut self, capability: &'static str) -> Self {
        self.capability = Some(capability);
        self
    }

    pub(crate) fn with_source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    pub(crate) fn with_folders(mut self, folders: &'static [&'static str]) -> Self {
        self.folders = folders;
        self
    }

    pub(crate) fn with_description(mut self, description: &str) -> Self {
        self.description = description.to_owned();
        self
    }
}

struct FakeTool {
    spec: ToolSpec,
    tool: TestTool,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
    /// Concurrent calls: now, and at most.
    running: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = request.arguments.to_value();
            self.calls.lock().push((self.tool.name.to_owned(), arguments.clone()));
            let running = self.running.0.fetch_add(1, Ordering::SeqCst) + 1;
            self.running.1.fetch_max(running, Ordering::SeqCst);
            if let Some(caller) = context.caller.as_ref().filter(|caller| caller.wants_progress()) {
                let message = Some("half way".to_owned());
                caller.progress(&toolyard_core::CallProgress { progress: 1.0, total: Some(2.0), message });
            }
            tokio::time::sleep(self.tool.delay).await;
            let outcome = match &self.tool.behavior {
                Behavior::Return(value) => Ok(ToolOutput::json(value.clone())),
                Behavior::Output(output) => Ok(output.clone()),
                Behavior::FailWith(message) => Err(ToolError::failed(message.clone())),
                Behavior::Echo => Ok(ToolOutput::json(arguments)),
                Behavior::Fail(kind) => {
                    Err(ToolError::new(*kind, "as scripted").with_hint("try something else"))
                }
                Behavior::Require(key) if arguments.get(key).is_some() => Ok(ToolOutput::json(arguments)),
                Behavior::Require(key) => Err(ToolError::failed(format!("`{key}` is missing"))),
                Behavior::RequireAbsolutePath => match arguments.get("filepath").and_then(Value::as_str) {
                    Some(path) if path.starts_with('/') => Ok(ToolOutput::json(arguments)),
                    path => Err(ToolError::failed(format!(
                        "Invalid filename: {path:?}, must be an absolute path"
                    ))),
                },
                Behavior::Sleep => {
                    let milliseconds = arguments.get("milliseconds").and_then(Value::as_u64).unwrap_or(0);
                    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                    Ok(ToolOutput::json(arguments))
                }
                Behavior::Hang => std::future::pending().await,
            };
            self.running.0.fetch_sub(1, Ordering::SeqCst);
            outcome
        })
    }
}

/// An agent with fake tools and a scripted model.
pub(crate) struct Fixture {
    pub(crate) agent: Agent,
    pub(crate) log: MemoryRunLog,
    pub(crate) hub: Arc<ToolHub>,
    pub(crate) model: Arc<ScriptedModel>,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
    /// Concurrent calls: now, and at most.
    running: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Fixture {
    pub(crate) fn new(model: ScriptedModel, tools: &[TestTool]) -> Self {
        let model = Arc::new(model);
        let mut fixture = Self::with_model(Arc::clone(&model) as Arc<dyn Model>, tools);
        fixture.model = model;
        fixture
    }

    /// A fixture whose operations are recorded.
    pub(crate) fn traced(model: ScriptedModel, tools: &[TestTool]) -> (Self, Arc<RecordingTelemetry>) {
        let telemetry = Arc::new(RecordingTelemetry::default());
        let config = HubConfig { telemetry: Some(Arc::clone(&telemetry) as _), ..HubConfig::default() };
        (Self::with_hub(ToolHub::new(config), Arc::new(model), tools), telemetry)
    }

    pub(crate) fn with_model(model: Arc<dyn Model>, tools: &[TestTool]) -> Self {
        Self::with_hub(ToolHub::default(), model, tools)
    }

    pub(crate) fn with_hub(hub: ToolHub, model: Arc<dyn Model>, tools: &[TestTool]) -> Self {
        let (hub, log) = (Arc::new(hub), MemoryRunLog::new());
        let parts = AgentParts {
            config: Arc::new(AgentConfig::new("assistant")),
            hub: Arc::clone(&hub),
            model,
            log: Arc::new(log.clone()),
            approvals: Arc::new(log.clone()),
            rules: ApprovalRules::default(),
            result_shapes: None,
            argument_examples: None,
            counter: Arc::new(O200k),
            owner: "test".to_owned(),
        };
        let silent = Arc::new(ScriptedModel::with_replies(ToolCalling::Schema, [""]));
        let agent = Agent::new(parts);
        let fixture = Self { agent, log, hub, model: silent, calls: Arc::default(), running: Arc::default() };
        fixture.register(tools);
        fixture
    }

    /// Registers tools, or replaces those of their sources.
    pub(crate) fn register(&self, tools: &[TestTool]) {
        let sources: std::collections::BTreeSet<&str> = tools.iter().map(|tool| tool.source).collect();
        for source in sources {
            let of_source: Vec<&TestTool> = tools.iter().filter(|tool| tool.source == source).collect();
            let folders = of_source.iter().flat_map(|tool| tool.folders).map(|folder| (*folder).to_owned());
            let scope = SourceScope { folders: folders.collect(), ..SourceScope::default() };
            let fakes =
                of_source.iter().map(|tool| Arc::new(self.fake_tool(tool)) as Arc<dyn Tool>).collect();
            let kind = if source == "native" { SourceKind::Native } else { SourceKind::Mcp };
            let info = SourceInfo::new(source, kind)
                .trusted(true)
                .scope(scope)
                .working_folder(Some("/docs".to_owned()));
            let registration = self.hub.register(info, fakes);
            assert!(registration.rejected.is_empty(), "{registration:?}");
        }
    }

    fn fake_tool(&self, tool: &TestTool) -> FakeTool {
        let hints = if tool.read_only { ToolHints::READ_ONLY } else { ToolHints::default() };
        let mut spec = ToolSpec::new(tool.name, tool.description.as_str())
            .with_hints(ToolHints { open_world: tool.open_world, ..hints })
            .without_inferred_capabilities();
        if let Some(capability) = tool.capability {
            spec = spec.with_capability(capability);
        }
        if !tool.parameters.is_empty() {
            let properties: serde_json::Map<String, Value> =
                tool.parameters.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
            spec = spec.with_input_schema(json!({"type": "object", "properties": properties}));
        }
        FakeTool {
            spec,
            tool: tool.clone(),
            calls: Arc::clone(&self.calls),
            running: Arc::clone(&self.running),
        }
    }

    /// The same fixture with other rules.
    pub(crate) fn with_rules(self, rules: ApprovalRules) -> Self {
        self.with_parts(|parts| parts.rules = rules)
    }

    pub(crate) fn with_parts(mut self, change: impl FnOnce(&mut AgentParts)) -> Self {
        let mut parts = self.agent.parts().clone();
        change(&mut parts);
        self.agent = Agent::new(parts)
            .with_lease_duration(self.agent.lease_duration)
            .with_tool_timeout(self.agent.tool_timeout);
        self
    }

    /// The tools that were called, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().iter().map(|(tool, _)| tool.clone()).collect()
    }

    pub(crate) fn arguments_of(&self, tool: &str) -> Vec<Value> {
        let calls = self.calls.lock();
        calls.iter().filter(|(name, _)| name == tool).map(|(_, arguments)| arguments.clone()).collect()
    }

    /// The highest number of concurrent calls.
    pub(crate) fn max_concurrent_calls(&self) -> usize {
        self.running.1.load(Ordering::SeqCst)
    }

    pub(crate) async fn ask(&self, request: RunRequest) -> (RunId, RunEnd) {
        self.agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap()
    }

    pub(crate) async fn resume(&self, run: &RunId) -> RunEnd {
        self.agent.drive(run, &NoWatcher, &CancelToken::new()).await.unwrap()
    }

    /// How a step ended according to the log.
    pub(crate) async fn step_end(&self, run: &RunId, step: &str) -> StepEnd {
        let last_end = self.events(run).await.into_iter().rev().find_map(|event| match event {
            RunEvent::StepEnded { step: id, outcome, .. } if id == step => Some(outcome),
            _ => None,
        });
        last_end.unwrap()
    }

    /// All logged events.
    pub(crate) async fn events(&self, run: &RunId) -> Vec<RunEvent> {
        let (_, logged) = load_run(&self.log, run).await.unwrap();
        let events = replay_updates(&logged).map(|update| match update {
            RunUpdate::Event { event, .. } => event,
            other => panic!("{other:?}"),
        });
        events.collect()
    }
}

/// A model with constrained output that returns these texts in turn, and the last one forever.
/// The text `unreachable` stands for a model that cannot be reached.
pub(crate) fn replying<const N: usize>(texts: [String; N]) -> ScriptedModel {
    let mut texts = VecDeque::from(texts);
    ScriptedModel::new(ToolCalling::Schema, move |_| {
        let text = if texts.len() > 1 { texts.pop_front() } else { texts.front().cloned() };
        match text {
            Some(text) if text == "unreachable" => {
                let error = ModelError::new("scripted", ModelErrorKind::Unreachable, "cannot be reached");
                Err(error.with_hint("start it"))
            }
            text => Ok(ModelReply { text: text.unwrap_or_default(), ..ModelReply::default() }),
        }
    })
}

/// A plan as a model writes it: id, tool, arguments and dependencies of its steps.
pub(crate) fn plan(steps: &[(&str, &str, Value, &[&str])]) -> String {
    let steps: Vec<Value> = steps
        .iter()
        .map(|(id, tool, arguments, dependencies)| {
            json!({"id": id, "tool_type": tool, "arguments": arguments, "dependencies": dependencies,
                   "description": format!("do {id}")})
        })
        .collect();
    json!({ "steps": steps }).to_string()
}

pub(crate) fn request(question: &str) -> RunRequest {
    RunRequest { question: question.to_owned(), agent: "assistant".to_owned(), ..RunRequest::default() }
}

/// Records updates and approval requests, and returns scripted decisions.
#[derive(Debug, Default)]
pub(crate) struct RecordingWatcher {
    pub(crate) updates: Mutex<Vec<RunUpdate>>,
    pub(crate) requests: Mutex<Vec<ApprovalRequest>>,
    decisions: Mutex<VecDeque<ApprovalDecision>>,
}

impl RecordingWatcher {
    pub(crate) fn with_decisions(decisions: impl IntoIterator<Item = ApprovalDecision>) -> Self {
        Self { decisions: Mutex::new(decisions.into_iter().collect()), ..Self::default() }
    }
}

impl RunWatcher for RecordingWatcher {
    fn on_update(&self, update: &RunUpdate) {
        self.updates.lock().push(update.clone());
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>> {
        self.requests.lock().push(request.clone());
        let decision = self.decisions.lock().pop_front();
        Box::pin(std::future::ready(decision))
    }
}
