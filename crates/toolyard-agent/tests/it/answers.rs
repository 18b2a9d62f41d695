//! Answers that claim more than the steps of their run did: every case is played through a real run with scripted tools and a
//! scripted model.
//!
//! `TOOLYARD_ANSWER_CASES=FILE` plays the cases of another file, and prints every case that did not end as expected.

#![expect(clippy::print_stdout, reason = "prints the table of a file of cases")]

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_agent::{
    Agent, AgentConfig, AgentParts, ApprovalDecision, ApprovalRequest, ApprovalRules, CancelToken,
    MemoryRunLog, O200k, RunEnd, RunLimits, RunRequest, RunUpdate, RunWatcher,
};
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints,
    ToolOutput, ToolSpec,
};
use toolyard_hub::ToolHub;
use toolyard_model::{ModelReply, ModelRequest, ScriptedModel, ToolCalling};

/// Of the true successes, how many may be called failures: the run does not end as a success.
const MAX_FALSE_FAILURES_PERCENT: usize = 2;
/// Of the true successes of each file, how many may end as a success with a value that is marked as unverified: a model computed
/// it, and no step did. The measured numbers; other files are not bounded.
const MAX_MARKED: [(&str, usize); 4] = [("everyday", 0), ("independent", 0), ("second", 19), ("third", 0)];

#[derive(Debug, Clone, Deserialize)]
struct Case {
    id: String,
    language: String,
    task: String,
    steps: Vec<CaseStep>,
    answer: String,
    expected: Expected,
    why: String,
}

#[derive(Debug, Clone, Deserialize)]
struct CaseStep {
    tool: String,
    source: String,
    effect: Effect,
    #[serde(default)]
    arguments: Map<String, Value>,
    outcome: Outcome,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Effect {
    Reads,
    Writes,
    Destroys,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Done,
    Failed,
    Unknown,
    NotBegun,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    /// The run ends complete, and its answer is not marked.
    Success,
    /// The run does not end as a success.
    Partial,
    /// A number or claim is marked as unverified, or the run does not end as a success.
    Unverified,
}

/// How the steps of a case are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Planning {
    /// All steps are in one plan, and the model answers.
    OnePlan,
    /// After a step that failed, another plan has the steps that follow it. A planner that has none left answers.
    Replanning,
}

/// What a scripted tool does with a call.
#[derive(Debug, Clone)]
struct Reply {
    arguments: Value,
    outcome: Result<Value, (ErrorKind, String)>,
}

/// A tool that answers the calls of a case: those with the same arguments in their order.
struct CaseTool {
    spec: ToolSpec,
    replies: Mutex<VecDeque<Reply>>,
}

impl Tool for CaseTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let arguments = request.arguments.to_value();
        let mut replies = self.replies.lock().unwrap();
        let at = replies.iter().position(|reply| reply.arguments == arguments).unwrap_or(0);
        let reply = replies.remove(at);
        Box::pin(std::future::ready(match reply.map(|reply| reply.outcome) {
            Some(Ok(Value::String(text))) => Ok(ToolOutput::text(text)),
            Some(Ok(value)) => Ok(ToolOutput::json(value)),
            Some(Err((kind, message))) => Err(ToolError::new(kind, message)),
            None => Err(ToolError::failed("the case has no such call")),
        }))
    }
}

/// Allows every call but those of the steps that a case refuses.
struct Approver {
    refused: Vec<Value>,
}

impl RunWatcher for Approver {
    fn on_update(&self, _update: &RunUpdate) {}

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>> {
        let is_refused = self.refused.iter().any(|step| step == &json!(request.step));
        let decision = if is_refused { ApprovalDecision::Deny } else { ApprovalDecision::Allow };
        Box::pin(std::future::ready(Some(decision)))
    }
}

fn step_id(index: usize) -> String {
    format!("step{}", index + 1)
}

/// Whether steps that depend on it do not begin.
fn stops_others(step: &CaseStep) -> bool {
    !matches!(step.outcome, Outcome::Done | Outcome::NotBegun)
}

/// One step as a planner writes it. A step that was not begun waits for the one before it that was not done.
fn plan_step(case: &Case, index: usize) -> Value {
    let step = &case.steps[index];
    let dependencies: Vec<String> = match step.outcome {
        Outcome::NotBegun => {
            (0..index).rev().find(|at| stops_others(&case.steps[*at])).map(step_id).into_iter().collect()
        }
        _ => Vec::new(),
    };
    json!({"id": step_id(index), "tool_type": step.tool, "arguments": step.arguments,
           "dependencies": dependencies, "description": step.tool})
}

/// The plans of a case, one per round.
fn rounds(case: &Case, planning: Planning) -> VecDeque<Vec<usize>> {
    let mut rounds = VecDeque::from([Vec::new()]);
    let mut after_failure = false;
    for (index, step) in case.steps.iter().enumerate() {
        let starts_round = after_failure && step.outcome != Outcome::NotBegun;
        if planning == Planning::Replanning && starts_round {
            rounds.push_back(Vec::new());
            after_failure = false;
        }
        after_failure |= step.outcome == Outcome::Failed;
        rounds.back_mut().unwrap().push(index);
    }
    rounds
}

fn is_planning(request: &ModelRequest) -> bool {
    request.schema.as_ref().is_some_and(|schema| schema.schema.get().contains("steps"))
}

fn model(case: &Case, planning: Planning) -> ScriptedModel {
    let mut rounds = rounds(case, planning);
    let case = case.clone();
    ScriptedModel::new(ToolCalling::Schema, move |request| {
        let text = if is_planning(request) {
            match rounds.pop_front() {
                Some(steps) if !steps.is_empty() => {
                    let steps: Vec<Value> = steps.into_iter().map(|index| plan_step(&case, index)).collect();
                    json!({ "steps": steps }).to_string()
                }
                _ => json!({ "answer": case.answer }).to_string(),
            }
        } else if request.messages.iter().any(|message| message.text.starts_with("A call failed")) {
            "no better arguments".to_owned()
        } else {
            case.answer.clone()
        };
        Ok(ModelReply { text, ..ModelReply::default() })
    })
}

fn register(hub: &ToolHub, case: &Case) {
    let mut tools: BTreeMap<(String, String), (Effect, VecDeque<Reply>)> = BTreeMap::new();
    for (at, step) in case.steps.iter().enumerate() {
        let waits = case.steps.iter().take(at).any(stops_others);
        let outcome = match step.outcome {
            // No step before it failed: its server could not be reached.
            Outcome::NotBegun if !waits => Err((ErrorKind::Failed, "not started".to_owned())),
            Outcome::Failed => {
                Err((ErrorKind::Failed, step.error.clone().unwrap_or_else(|| "failed".to_owned())))
            }
            Outcome::Unknown => Err((ErrorKind::OutcomeUnknown, "the response was lost".to_owned())),
            Outcome::Done | Outcome::NotBegun | Outcome::Refused => {
                Ok(step.result.clone().unwrap_or(json!("ok")))
            }
        };
        let reply = Reply { arguments: Value::Object(step.arguments.clone()), outcome };
        let key = (step.source.clone(), step.tool.clone());
        let (effect, replies) = tools.entry(key).or_insert_with(|| (step.effect, VecDeque::new()));
        // A tool that reads here and writes there may write.
        if *effect == Effect::Reads {
            *effect = step.effect;
        }
        let is_called = step.outcome != Outcome::Refused && !(step.outcome == Outcome::NotBegun && waits);
        if is_called {
            replies.push_back(reply);
        }
    }
    let mut sources: HashMap<String, Vec<Arc<dyn Tool>>> = HashMap::new();
    for ((source, name), (effect, replies)) in tools {
        // The planner knows only the tools that a search for the request finds: the request describes them.
        let hints = match effect {
            Effect::Reads => ToolHints::READ_ONLY,
            Effect::Writes => ToolHints { destructive: Some(false), ..ToolHints::default() },
            Effect::Destroys => ToolHints { destructive: Some(true), ..ToolHints::default() },
        };
        let spec = ToolSpec::new(name.as_str(), case.task.as_str())
            .with_hints(hints)
            .without_inferred_capabilities();
        let tool = CaseTool { spec, replies: Mutex::new(replies) };
        sources.entry(source).or_default().push(Arc::new(tool));
    }
    for (source, tools) in sources {
        let kind = if source == "native" { SourceKind::Native } else { SourceKind::Mcp };
        let registration = hub.register(SourceInfo::new(source.as_str(), kind).trusted(true), tools);
        assert!(registration.rejected.is_empty(), "{registration:?}");
    }
}

/// How a case ended.
#[derive(Debug)]
struct Played {
    is_success: bool,
    is_marked: bool,
    text: String,
}

async fn play(case: &Case, planning: Planning) -> Played {
    let hub = ToolHub::default();
    register(&hub, case);
    let log = MemoryRunLog::new();
    let agent = Agent::new(AgentParts {
        config: Arc::new(AgentConfig::new("assistant")),
        hub: Arc::new(hub),
        model: Arc::new(model(case, planning)),
        log: Arc::new(log.clone()),
        approvals: Arc::new(log),
        rules: ApprovalRules::default(),
        result_shapes: None,
        argument_examples: None,
        counter: Arc::new(O200k),
        owner: "test".to_owned(),
    });
    let steps = case.steps.iter().enumerate();
    let refused =
        steps.filter(|(_, step)| step.outcome == Outcome::Refused).map(|(at, _)| json!(step_id(at)));
    let approver = Approver { refused: refused.collect() };
    let replans = if planning == Planning::Replanning { 3 } else { 0 };
    let limits = RunLimits { replans, identical_calls: 10, ..RunLimits::default() };
    let request = RunRequest {
        question: case.task.clone(),
        agent: "assistant".to_owned(),
        limits,
        ..RunRequest::default()
    };
    let (_, end) = agent.ask(request, &approver, &CancelToken::new()).await.unwrap();
    let text = end.answer().map_or_else(|| format!("{end:?}"), str::to_owned);
    let is_marked =
        ["[Not found in any result:", "【未在任何结果中出现："].iter().any(|mark| text.contains(mark));
    Played { is_success: matches!(end, RunEnd::Answered { .. }), is_marked, text }
}

/// Tells the retry of a call from the call itself: a plan that repeats a failed call is refused.
fn with_distinct_calls(mut case: Case) -> Case {
    for at in 1..case.steps.len() {
        let (earlier, later) = case.steps.split_at_mut(at);
        let Some(step) = later.first_mut() else { continue };
        let attempts = earlier
            .iter()
            .filter(|other| other.tool == step.tool && other.arguments == step.arguments)
            .count();
        if attempts > 0 {
            step.arguments.insert("attempt".to_owned(), json!(attempts + 1));
        }
    }
    case
}

fn cases(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(at, line): (usize, &str)| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), at + 1))
    };
    lines.map(read).map(with_distinct_calls).collect()
}

#[derive(Debug, Default)]
struct Row {
    cases: usize,
    false_successes: usize,
    true_successes: usize,
    /// True successes whose run does not end as a success.
    false_failures: usize,
    /// True successes whose run ends as a success with a marked value.
    marked: usize,
}

/// Plays all cases of a file, prints the table, and returns the row of all languages.
async fn table(path: &Path) -> Row {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for case in cases(path) {
        let mut is_false_success = false;
        let mut is_false_failure = false;
        let mut is_marked = false;
        for planning in [Planning::OnePlan, Planning::Replanning] {
            let played = play(&case, planning).await;
            let is_wrong = match case.expected {
                Expected::Success => !played.is_success || played.is_marked,
                Expected::Partial => played.is_success,
                Expected::Unverified => played.is_success && !played.is_marked,
            };
            if is_wrong {
                let (id, expected, why) = (&case.id, case.expected, &case.why);
                println!("{id} ({planning:?}): expected {expected:?} ({why}), got: {}\n", played.text);
            }
            is_false_success |= is_wrong && case.expected != Expected::Success;
            is_false_failure |= case.expected == Expected::Success && !played.is_success;
            is_marked |= case.expected == Expected::Success && played.is_marked;
        }
        for language in [case.language.as_str(), "all"] {
            let row = rows.entry(language.to_owned()).or_default();
            row.cases += 1;
            row.false_successes += usize::from(is_false_success);
            row.true_successes += usize::from(case.expected == Expected::Success);
            row.false_failures += usize::from(is_false_failure);
            row.marked += usize::from(is_marked && !is_false_failure);
        }
    }
    println!("{}", path.display());
    println!("language  cases  false successes  true successes  called failures  only marked");
    for (language, row) in &rows {
        let percent = |count: usize| 100.0 * count as f64 / row.true_successes.max(1) as f64;
        println!(
            "{language:8}  {:5}  {:15}  {:14}  {:6} ({:4.1} %)  {:3} ({:4.1} %)",
            row.cases,
            row.false_successes,
            row.true_successes,
            row.false_failures,
            percent(row.false_failures),
            row.marked,
            percent(row.marked)
        );
    }
    rows.remove("all").unwrap_or_default()
}

fn max_marked(file: &Path) -> usize {
    let is_file = |(name, _): &&(&str, usize)| file.file_stem().is_some_and(|stem| stem == *name);
    MAX_MARKED.iter().find(is_file).map_or(usize::MAX, |(_, most)| *most)
}

#[tokio::test]
async fn no_answer_claims_work_that_was_not_done() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/answers");
    let mut files: Vec<PathBuf> = match std::env::var_os("TOOLYARD_ANSWER_CASES") {
        Some(file) => vec![PathBuf::from(file)],
        None => std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect(),
    };
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let mut failed = Vec::new();
    for file in files {
        let row = table(&file).await;
        let is_good = row.false_successes == 0
            && row.false_failures * 100 <= row.true_successes * MAX_FALSE_FAILURES_PERCENT
            && row.marked <= max_marked(&file);
        if !is_good {
            failed.push(file);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
