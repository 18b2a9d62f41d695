//! Suspended runs use next to no memory, and each resumes when it is approved.

use std::sync::{Arc, LazyLock};

use futures_util::{StreamExt as _, stream};
use serde_json::json;
use toolyard_agent::{
    Agent, AgentConfig, AgentParts, ApprovalRules, CancelToken, NoWatcher, O200k, RunEnd, RunRequest,
    decide_approval,
};
use toolyard_core::{
    Approvals as _, BoxFuture, CallContext, Journal as _, RunId, RunState, SourceInfo, SourceKind, Tool,
    ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};
use toolyard_hub::ToolHub;
use toolyard_model::{Model, ModelEvent, ModelRequest, ModelStream, ToolCalling};
use toolyard_store::{Location, Store};

/// Suspended runs: a smoke test by default, ten thousand with `just crash`.
static SUSPENDED_RUNS: LazyLock<usize> = LazyLock::new(|| {
    std::env::var("TOOLYARD_SUSPENDED_RUNS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_500)
});
/// Runs before memory is measured, so that lazily created state exists.
const WARM_UP_RUNS: usize = 500;
/// Resumed runs.
const RESUMED_RUNS: usize = 100;
/// Runs driven concurrently.
const CONCURRENCY: usize = 64;

/// Plans a read and a write that needs approval.
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

struct FakeTool(ToolSpec);

impl Tool for FakeTool {
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
        vec![Arc::new(FakeTool(look)), Arc::new(FakeTool(ToolSpec::new("write", "Writes something down")))];
    hub.register(SourceInfo::new("desk", SourceKind::Mcp).trusted(true), tools);
    Agent::new(AgentParts {
        config: Arc::new(AgentConfig::new("assistant")),
        hub: Arc::new(hub),
        model: Arc::new(Planner),
        log: Arc::new(store.clone()),
        approvals: Arc::new(store.clone()),
        rules: ApprovalRules::default(),
        result_shapes: None,
        argument_examples: None,
        counter: Arc::new(O200k),
        owner: "test".to_owned(),
    })
}

async fn suspend_runs(agent: &Agent, count: usize) -> Vec<RunId> {
    let suspend = |number: usize| async move {
        let request = RunRequest {
            question: format!("look at it and write it down, {number}"),
            ..RunRequest::default()
        };
        let (run, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap();
        assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
        run
    };
    stream::iter(0..count).map(suspend).buffer_unordered(CONCURRENCY).collect().await
}

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * rustix::param::page_size()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_runs_use_little_memory_and_resume() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
    let agent = agent(&store);
    suspend_runs(&agent, WARM_UP_RUNS).await;
    let before = resident_bytes();
    let start = std::time::Instant::now();
    let runs = suspend_runs(&agent, *SUSPENDED_RUNS - WARM_UP_RUNS).await;
    let (took, after) = (start.elapsed(), resident_bytes());
    let bytes_per_run = after.saturating_sub(before) / runs.len();
    println!(
        "{} suspended runs: {bytes_per_run} bytes of memory each ({before} to {after}), {:.2} ms per run",
        *SUSPENDED_RUNS,
        took.as_secs_f64() * 1e3 / f64::from(u32::try_from(runs.len()).unwrap())
    );
    assert!(bytes_per_run <= 5_000, "{bytes_per_run} bytes each");

    let pending = store.pending_approvals().await.unwrap();
    assert_eq!(pending.len(), *SUSPENDED_RUNS);
    for approval in pending.iter().step_by(*SUSPENDED_RUNS / RESUMED_RUNS) {
        assert!(
            decide_approval(&store, &store, approval.id, toolyard_agent::ApprovalDecision::Allow, "ada")
                .await
                .unwrap()
        );
        let end = agent.drive(&approval.run, &NoWatcher, &CancelToken::new()).await.unwrap();
        let RunEnd::Answered { answer, sources, .. } = end else { unreachable!("{end:?}") };
        assert_eq!((answer.as_str(), sources.len()), ("Written.", 2));
        assert_eq!(store.run(&approval.run).await.unwrap().state, RunState::Done);
    }
    assert_eq!(store.pending_approvals().await.unwrap().len(), *SUSPENDED_RUNS - RESUMED_RUNS);
}
