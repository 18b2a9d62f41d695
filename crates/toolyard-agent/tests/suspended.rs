//! Ten thousand runs that wait for a person are rows and nothing else, and each goes on when its answer comes.

#![expect(clippy::unwrap_used, reason = "a test helper fails its test")]

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use serde_json::json;
use toolyard_agent::{
    Agent, AgentConfig, AgentParts, ApprovalRules, Ask, CancelToken, O200k, RunEnd, Unwatched,
    answer_question,
};
use toolyard_core::{
    Approvals as _, BoxFuture, CallContext, Journal as _, RunId, RunState, SourceInfo, SourceKind, Tool,
    ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};
use toolyard_hub::ToolHub;
use toolyard_model::{Model, ModelEvent, ModelRequest, ModelStream, ToolCalling};
use toolyard_store::{Location, Store};

/// How many runs wait at once.
const RUNS: usize = 10_000;
/// So many come first, so that everything that is made once is made.
const FIRST: usize = 500;
/// So many are gone on with.
const RESUMED: usize = 100;
/// So many are worked on at the same time.
const AT_ONCE: usize = 64;

/// Plans one write to whoever wants a plan.
#[derive(Debug)]
struct Planner;

impl Model for Planner {
    fn name(&self) -> &'static str {
        "planner"
    }

    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Schema
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let plan = json!({"steps": [
            {"id": "look", "tool_type": "look", "arguments": {"at": "it"}, "description": "look at it"},
            {"id": "write", "tool_type": "write", "arguments": {"what": "$look.seen"}, "description": "write it down"},
        ]});
        let text = if request.schema.is_some() { plan.to_string() } else { "Written.".to_owned() };
        Box::pin(stream::iter([Ok(ModelEvent::Text(text))]))
    }
}

struct Plain(ToolSpec);

impl Tool for Plain {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(Ok(ToolOutput::json(json!({"seen": "x".repeat(2_000)})))))
    }
}

fn agent(store: &Store) -> Agent {
    let hub = ToolHub::default();
    let look = ToolSpec::new("look", "Looks at something").with_hints(toolyard_core::ToolHints::READ_ONLY);
    let tools: Vec<Arc<dyn Tool>> =
        vec![Arc::new(Plain(look)), Arc::new(Plain(ToolSpec::new("write", "Writes something down")))];
    hub.register(SourceInfo::new("desk", SourceKind::Mcp).trusted(true), tools);
    Agent::new(AgentParts {
        config: AgentConfig::new("assistant"),
        hub: Arc::new(hub),
        model: Arc::new(Planner),
        log: Arc::new(store.clone()),
        approvals: Arc::new(store.clone()),
        rules: ApprovalRules::default(),
        forms: None,
        counter: Arc::new(O200k),
        owner: "test".to_owned(),
    })
}

async fn suspended(agent: &Agent, count: usize) -> Vec<RunId> {
    let one = |at: usize| async move {
        let ask = Ask { question: format!("look at it and write it down, {at}"), ..Ask::default() };
        let (run, end) = agent.ask(ask, &Unwatched, &CancelToken::new()).await.unwrap();
        assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
        run
    };
    stream::iter(0..count).map(one).buffer_unordered(AT_ONCE).collect().await
}

/// What this process holds in memory, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * rustix::param::page_size()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_suspended_runs_are_rows_and_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
    let agent = agent(&store);
    suspended(&agent, FIRST).await;
    let before = resident();
    let began = std::time::Instant::now();
    let runs = suspended(&agent, RUNS - FIRST).await;
    let (took, after) = (began.elapsed(), resident());
    let each = after.saturating_sub(before) / runs.len();
    println!(
        "{RUNS} suspended runs: {each} bytes of memory each ({before} to {after}), {:.2} ms to come there",
        took.as_secs_f64() * 1e3 / f64::from(u32::try_from(runs.len()).unwrap())
    );
    assert!(each <= 5_000, "{each} bytes each");

    let waiting = store.waiting().await.unwrap();
    assert_eq!(waiting.len(), RUNS);
    for question in waiting.iter().step_by(RUNS / RESUMED) {
        assert!(answer_question(&store, &store, question.id, true, "ada").await.unwrap());
        let end = agent.drive(&question.run, &Unwatched, &CancelToken::new()).await.unwrap();
        let RunEnd::Answered { answer, sources, .. } = end else { unreachable!("{end:?}") };
        assert_eq!((answer.as_str(), sources.len()), ("Written.", 2));
        assert_eq!(store.run(&question.run).await.unwrap().state, RunState::Done);
    }
    assert_eq!(store.waiting().await.unwrap().len(), RUNS - RESUMED);
}
