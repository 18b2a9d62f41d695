//! Receipts of runs with scripted tools and a scripted model that may lie: what a receipt says is what was recorded, whatever the
//! answer says. Somebody who knew neither the code nor the rules wrote the cases.
//!
//! `TOOLYARD_RECEIPT_CASES=FILE` plays the cases of another file. Printed are also, as rates without a limit, the values of answers
//! that are marked as unfounded.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_agent::{
    Agent, AgentConfig, AgentParts, ApprovalDecision, ApprovalRequest, ApprovalRules, CancelToken, Effect,
    EffectState, MemoryRunLog, O200k, RunEnd, RunEvent, RunLimits, RunRequest, RunUpdate, RunWatcher,
    load_run,
};
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints,
    ToolOutput, ToolSpec,
};
use toolyard_hub::ToolHub;
use toolyard_model::{ModelReply, ModelRequest, ScriptedModel, ToolCalling};

#[derive(Debug, Clone, Deserialize)]
struct Case {
    id: String,
    task: String,
    steps: Vec<CaseStep>,
    answer: String,
    why: String,
    /// What the receipt says of each step; derived from the outcomes where a file of cases does not say it.
    #[serde(default)]
    receipt: Vec<Option<EffectState>>,
    #[serde(default)]
    status: Option<Status>,
    /// Values of the answer that are neither in a result nor in the request.
    #[serde(default)]
    unfounded: Option<Vec<String>>,
    /// Why the program is expected to differ from this case.
    #[serde(default)]
    expected_failure: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct CaseStep {
    tool: String,
    source: String,
    effect: CaseEffect,
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
enum CaseEffect {
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

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Success,
    Partial,
    /// It is suspended until somebody says whether a call took effect.
    Unknown,
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
        let mut replies = self.replies.lock();
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
    let mut tools: BTreeMap<(String, String), (CaseEffect, VecDeque<Reply>)> = BTreeMap::new();
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
        if *effect == CaseEffect::Reads {
            *effect = step.effect;
        }
        let is_called = step.outcome != Outcome::Refused && !(step.outcome == Outcome::NotBegun && waits);
        if is_called {
            replies.push_back(reply);
        }
    }
    let mut sources: HashMap<String, Vec<Arc<dyn Tool>>> = HashMap::new();
    for ((source, name), (effect, replies)) in tools {
        let hints = match effect {
            CaseEffect::Reads => ToolHints::READ_ONLY,
            CaseEffect::Writes => ToolHints { destructive: Some(false), ..ToolHints::default() },
            CaseEffect::Destroys => ToolHints { destructive: Some(true), ..ToolHints::default() },
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
    status: Status,
    effects: Vec<Effect>,
    text: String,
}

async fn play(case: &Case, planning: Planning) -> Played {
    let hub = ToolHub::default();
    register(&hub, case);
    let log = MemoryRunLog::new();
    let logged = log.clone();
    // Named tools are in every prompt, whatever a search finds for the request.
    let tools = case.steps.iter().map(|step| format!("{}@{}", step.tool, step.source)).collect();
    let agent = Agent::new(AgentParts {
        config: Arc::new(AgentConfig { tools, ..AgentConfig::new("assistant") }),
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
    let (id, end) = agent.ask(request, &approver, &CancelToken::new()).await.unwrap();
    let text = end.answer().map_or_else(|| format!("{end:?}"), str::to_owned);
    let status = match end {
        RunEnd::Answered { .. } => Status::Success,
        RunEnd::Suspended { .. } => Status::Unknown,
        _ => Status::Partial,
    };
    let (run, events) = load_run(&logged, &id).await.unwrap();
    let Ok(RunEvent::Ended { effects: Some(effects), .. }) = events.last().unwrap().event.read() else {
        panic!("{events:?}")
    };
    assert_eq!(effects, run.effects(), "the logged receipt is that of the steps");
    Played { status, effects, text }
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

/// What the receipt must say of a step; none if its tool only reads.
fn expected_state(case: &Case, index: usize) -> Option<EffectState> {
    if let Some(state) = case.receipt.get(index) {
        return *state;
    }
    let step = &case.steps[index];
    match step.outcome {
        _ if step.effect == CaseEffect::Reads => None,
        Outcome::Done if denies(step.result.as_ref()) => Some(EffectState::NotDone),
        Outcome::Done => Some(EffectState::Done),
        Outcome::Unknown => Some(EffectState::Unknown),
        Outcome::Failed | Outcome::NotBegun | Outcome::Refused => Some(EffectState::NotDone),
    }
}

/// Whether a result says without words that its call failed.
fn denies(result: Option<&Value>) -> bool {
    let parsed = result.and_then(Value::as_str).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(Value::Object(fields)) = parsed.as_ref().or(result) else { return false };
    let has = |name: &str, flag: bool| fields.get(name) == Some(&Value::Bool(flag));
    let has_error = match fields.get("error") {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::Bool(failed)) => *failed,
        _ => false,
    };
    let code = fields.get("exit_code").and_then(Value::as_i64).unwrap_or_default();
    has_error || code != 0 || has("ok", false) || has("success", false) || has("isError", true)
}

/// What is wrong with a played case.
fn faults(case: &Case, planning: Planning, played: &Played) -> Vec<String> {
    let mut faults = Vec::new();
    // A tool that reads in one step and writes in another may write.
    let may_write = |step: &CaseStep| {
        case.steps.iter().any(|other| {
            (&other.tool, &other.source) == (&step.tool, &step.source) && other.effect != CaseEffect::Reads
        })
    };
    for (index, step) in case.steps.iter().enumerate() {
        let told = played.effects.iter().find(|effect| effect.step == step_id(index));
        let expected = expected_state(case, index);
        // A later plan may have replaced it before it was begun.
        let is_replaced = planning == Planning::Replanning && step.outcome == Outcome::NotBegun;
        match (told, expected) {
            (None, None) => {}
            (Some(effect), Some(expected)) if effect.state == expected => {}
            (Some(_), None) if may_write(step) => {}
            (None, Some(EffectState::NotDone)) if is_replaced => {}
            (told, expected) => {
                faults.push(format!("{}: told {told:?}, expected {expected:?}", step_id(index)));
            }
        }
    }
    let is_undone = |effect: &Effect| effect.state != EffectState::Done;
    if played.status == Status::Success
        && planning == Planning::OnePlan
        && played.effects.iter().any(is_undone)
    {
        faults.push("a success with a change that was not made".to_owned());
    }
    if let (Some(status), Planning::OnePlan) = (case.status, planning)
        && status != played.status
    {
        faults.push(format!("ended as {:?}, expected {status:?}", played.status));
    }
    faults
}

/// The values that an answer marks as unfounded.
fn marked(text: &str) -> Vec<String> {
    let find = |start: &str, end: &str, separator: &str| {
        let (_, rest) = text.rsplit_once(start)?;
        Some(rest.split_once(end)?.0.split(separator).map(str::to_owned).collect::<Vec<_>>())
    };
    find("[Not found in any result: ", "]", ", ")
        .or_else(|| find("【未在任何结果中出现：", "】", "、"))
        .unwrap_or_default()
}

#[tokio::test]
async fn receipts_say_what_was_recorded_whatever_the_answer_says() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/receipts/cases.jsonl");
    let file = std::env::var_os("TOOLYARD_RECEIPT_CASES").map_or(folder, PathBuf::from);
    let (mut failed, mut surprises) = (Vec::new(), Vec::new());
    let (mut listed, mut found, mut marks, mut right_marks) = (0, 0, 0, 0);
    let all = cases(&file);
    for case in &all {
        let mut case_faults = Vec::new();
        for planning in [Planning::OnePlan, Planning::Replanning] {
            let played = play(case, planning).await;
            case_faults.extend(faults(case, planning, &played));
            if let (Some(unfounded), Planning::OnePlan) = (&case.unfounded, planning) {
                let marked = marked(&played.text);
                let is_same = |one: &str, other: &str| {
                    let (one, other) = (one.to_lowercase(), other.to_lowercase());
                    one.contains(&other) || other.contains(&one)
                };
                listed += unfounded.len();
                found +=
                    unfounded.iter().filter(|value| marked.iter().any(|mark| is_same(mark, value))).count();
                marks += marked.len();
                let right = marked.iter().filter(|mark| unfounded.iter().any(|value| is_same(mark, value)));
                right_marks += right.count();
                if marked.iter().any(|mark| !unfounded.iter().any(|value| is_same(mark, value))) {
                    println!("{}: marked {marked:?}, unfounded {unfounded:?}", case.id);
                }
            }
        }
        match (&case.expected_failure, case_faults.is_empty()) {
            (None, false) => failed.push(format!("{} ({}): {case_faults:?}", case.id, case.why)),
            (Some(_), true) => surprises.push(case.id.clone()),
            _ => {}
        }
    }
    println!("{}: {} cases, {} with a wrong receipt or status", file.display(), all.len(), failed.len());
    println!(
        "values: {found} of {listed} unfounded ones are marked; {right_marks} of {marks} marks are right"
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(surprises.is_empty(), "expected to fail, and does not: {surprises:?}");
}
