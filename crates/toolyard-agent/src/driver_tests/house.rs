//! A house for one test: tools that do what they are told, a model that says what it is told, a log in memory.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, RunId, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError,
    ToolHints, ToolOutput, ToolSpec,
};
use toolyard_hub::ToolHub;
use toolyard_model::{Model, ModelError, ModelErrorKind, ModelReply, ScriptedModel, ToolCalling};

use crate::{
    Agent, AgentConfig, AgentParts, ApprovalDecision, ApprovalQuestion, ApprovalRules, Ask, CancelToken,
    MemoryLog, O200k, RunEnd, RunEvent, RunNews, RunWatcher, StepEnd, Unwatched, load, replay,
};

/// What a tool does with its arguments.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Answers with this.
    Answers(Value),
    /// Answers with its arguments.
    Echoes,
    /// Fails so, again and again.
    Fails(ErrorKind),
    /// Fails until it is given this argument.
    Wants(&'static str),
    /// Answers after as many `milliseconds` as its arguments say.
    Sleeps,
    /// Never answers.
    Hangs,
}

/// A tool of one test.
#[derive(Debug, Clone)]
pub(crate) struct TestTool {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    pub(crate) read_only: bool,
    pub(crate) takes: Duration,
    pub(crate) act: Act,
    pub(crate) description: String,
}

/// A tool that only reads and answers at once.
pub(crate) fn tool(name: &'static str, act: Act) -> TestTool {
    let description = format!("The tool {name}");
    TestTool { name, source: "yard", read_only: true, takes: Duration::ZERO, act, description }
}

pub(crate) fn failing(name: &'static str, kind: ErrorKind) -> TestTool {
    tool(name, Act::Fails(kind))
}

impl TestTool {
    pub(crate) fn takes(mut self, milliseconds: u64) -> Self {
        self.takes = Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn writes(mut self) -> Self {
        self.read_only = false;
        self
    }

    pub(crate) fn at(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    pub(crate) fn described(mut self, description: &str) -> Self {
        self.description = description.to_owned();
        self
    }
}

struct Carried {
    spec: ToolSpec,
    tool: TestTool,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
    running: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Tool for Carried {
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
            self.calls.lock().unwrap().push((self.tool.name.to_owned(), arguments.clone()));
            let running = self.running.0.fetch_add(1, Ordering::SeqCst) + 1;
            self.running.1.fetch_max(running, Ordering::SeqCst);
            if let Some(caller) = context.caller.as_ref().filter(|caller| caller.wants_progress()) {
                let message = Some("half way".to_owned());
                caller.progress(&toolyard_core::CallProgress { progress: 1.0, total: Some(2.0), message });
            }
            tokio::time::sleep(self.tool.takes).await;
            let outcome = match &self.tool.act {
                Act::Answers(value) => Ok(ToolOutput::json(value.clone())),
                Act::Echoes => Ok(ToolOutput::json(arguments)),
                Act::Fails(kind) => Err(ToolError::new(*kind, "as scripted").with_hint("try something else")),
                Act::Wants(key) if arguments.get(key).is_some() => Ok(ToolOutput::json(arguments)),
                Act::Wants(key) => Err(ToolError::failed(format!("`{key}` is missing"))),
                Act::Sleeps => {
                    let milliseconds = arguments.get("milliseconds").and_then(Value::as_u64).unwrap_or(0);
                    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                    Ok(ToolOutput::json(arguments))
                }
                Act::Hangs => std::future::pending().await,
            };
            self.running.0.fetch_sub(1, Ordering::SeqCst);
            outcome
        })
    }
}

/// Everything that one test needs.
pub(crate) struct House {
    pub(crate) agent: Agent,
    pub(crate) log: MemoryLog,
    pub(crate) hub: Arc<ToolHub>,
    pub(crate) model: Arc<ScriptedModel>,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
    running: Arc<(AtomicUsize, AtomicUsize)>,
}

impl House {
    pub(crate) fn new(model: ScriptedModel, tools: &[TestTool]) -> Self {
        let model = Arc::new(model);
        let mut house = Self::with_model(Arc::clone(&model) as Arc<dyn Model>, tools);
        house.model = model;
        house
    }

    pub(crate) fn with_model(model: Arc<dyn Model>, tools: &[TestTool]) -> Self {
        let (hub, log) = (Arc::new(ToolHub::default()), MemoryLog::new());
        let parts = AgentParts {
            config: AgentConfig::new("assistant"),
            hub: Arc::clone(&hub),
            model,
            log: Arc::new(log.clone()),
            approvals: Arc::new(log.clone()),
            rules: ApprovalRules::default(),
            forms: None,
            counter: Arc::new(O200k),
            owner: "test".to_owned(),
        };
        let silent = Arc::new(ScriptedModel::saying(ToolCalling::Schema, [""]));
        let agent = Agent::new(parts);
        let house = Self { agent, log, hub, model: silent, calls: Arc::default(), running: Arc::default() };
        house.register(tools);
        house
    }

    /// Registers tools, or replaces those of their sources.
    pub(crate) fn register(&self, tools: &[TestTool]) {
        let sources: std::collections::BTreeSet<&str> = tools.iter().map(|tool| tool.source).collect();
        for source in sources {
            let of_source = tools.iter().filter(|tool| tool.source == source);
            let carried = of_source.map(|tool| Arc::new(self.carried(tool)) as Arc<dyn Tool>).collect();
            let info = SourceInfo::new(source, SourceKind::Mcp).trusted(true);
            let registration = self.hub.register(info, carried);
            assert!(registration.rejected.is_empty(), "{registration:?}");
        }
    }

    fn carried(&self, tool: &TestTool) -> Carried {
        let hints = if tool.read_only { ToolHints::READ_ONLY } else { ToolHints::default() };
        Carried {
            spec: ToolSpec::new(tool.name, tool.description.as_str())
                .with_hints(hints)
                .without_capabilities(),
            tool: tool.clone(),
            calls: Arc::clone(&self.calls),
            running: Arc::clone(&self.running),
        }
    }

    /// The same house with other rules.
    pub(crate) fn ruled(self, rules: ApprovalRules) -> Self {
        self.changed(|parts| parts.rules = rules)
    }

    pub(crate) fn changed(mut self, change: impl FnOnce(&mut AgentParts)) -> Self {
        let mut parts = self.agent.parts().clone();
        change(&mut parts);
        self.agent = Agent::new(parts).with_lease(self.agent.lease).with_patience(self.agent.patience);
        self
    }

    /// All calls that tools really received, in their order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(tool, _)| tool.clone()).collect()
    }

    pub(crate) fn arguments_of(&self, tool: &str) -> Vec<Value> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(name, _)| name == tool).map(|(_, arguments)| arguments.clone()).collect()
    }

    /// How many calls were under way at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.running.1.load(Ordering::SeqCst)
    }

    pub(crate) async fn ask(&self, ask: Ask) -> (RunId, RunEnd) {
        self.agent.ask(ask, &Unwatched, &CancelToken::new()).await.unwrap()
    }

    pub(crate) async fn resume(&self, run: &RunId) -> RunEnd {
        self.agent.drive(run, &Unwatched, &CancelToken::new()).await.unwrap()
    }

    /// What came of a step, by the log.
    pub(crate) async fn end_of(&self, run: &RunId, step: &str) -> StepEnd {
        let ends = self.events(run).await.into_iter().rev().find_map(|event| match event {
            RunEvent::StepEnded { step: id, outcome, .. } if id == step => Some(outcome),
            _ => None,
        });
        ends.unwrap()
    }

    /// All transitions. They must make the run that the log says it is.
    pub(crate) async fn events(&self, run: &RunId) -> Vec<RunEvent> {
        let (_, logged) = load(&self.log, run).await.unwrap();
        let news = replay(&logged).map(|news| match news {
            RunNews::Event { event, .. } => event,
            other => panic!("{other:?}"),
        });
        news.collect()
    }
}

/// A model that says these texts one after the other, and the last one for ever; it is held to a schema.
pub(crate) fn saying<const N: usize>(texts: [String; N]) -> ScriptedModel {
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

/// A plan as a model writes it: steps of name, tool, arguments and what they wait for.
pub(crate) fn plan(steps: &[(&str, &str, Value, &[&str])]) -> String {
    let steps: Vec<Value> = steps
        .iter()
        .map(|(id, tool, arguments, needs)| {
            json!({"id": id, "tool_type": tool, "arguments": arguments, "dependencies": needs,
                   "description": format!("do {id}"), "complexity": "low"})
        })
        .collect();
    json!({ "steps": steps }).to_string()
}

pub(crate) fn ask(question: &str) -> Ask {
    Ask { question: question.to_owned(), agent: "assistant".to_owned(), ..Ask::default() }
}

/// Watches, and decides as it was told.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) news: Mutex<Vec<RunNews>>,
    pub(crate) questions: Mutex<Vec<ApprovalQuestion>>,
    decisions: Mutex<VecDeque<ApprovalDecision>>,
}

impl Seen {
    pub(crate) fn deciding(decisions: impl IntoIterator<Item = ApprovalDecision>) -> Self {
        Self { decisions: Mutex::new(decisions.into_iter().collect()), ..Self::default() }
    }
}

impl RunWatcher for Seen {
    fn see(&self, news: &RunNews) {
        self.news.lock().unwrap().push(news.clone());
    }

    fn decide<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Option<ApprovalDecision>> {
        self.questions.lock().unwrap().push(question.clone());
        let decision = self.decisions.lock().unwrap().pop_front();
        Box::pin(std::future::ready(decision))
    }
}
