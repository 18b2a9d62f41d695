//! A large result is passed to two other steps through a store, and no prompt grows: 8 MB, or the number of megabytes in
//! `TOOLYARD_LARGE_RESULT_MB`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use futures_util::stream;
use serde_json::json;
use toolyard_agent::{
    Agent, AgentConfig, AgentParts, ApprovalRules, CancelToken, NoWatcher, O200k, RunEnd, RunRequest,
};
use toolyard_core::{
    BoxFuture, CallContext, RawJson, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints,
    ToolOutput, ToolSpec,
};
use toolyard_hub::ToolHub;
use toolyard_model::{Model, ModelEvent, ModelRequest, ModelStream, ToolCalling};
use toolyard_store::{Location, Store};

/// Size of the result.
fn result_bytes() -> usize {
    let megabytes = std::env::var("TOOLYARD_LARGE_RESULT_MB").ok().and_then(|text| text.parse().ok());
    megabytes.unwrap_or(8_usize) << 20
}

#[derive(Debug, Default)]
struct Planner {
    longest_prompt: AtomicUsize,
}

impl Model for Planner {
    fn name(&self) -> &'static str {
        "planner"
    }

    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Schema
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let prompt: usize = request.messages.iter().map(|message| message.text.len()).sum();
        self.longest_prompt.fetch_max(prompt, Ordering::Relaxed);
        let plan = json!({"steps": [
            {"id": "read", "tool_type": "read_all", "arguments": {"file": "a"}},
            {"id": "one", "tool_type": "measure", "arguments": {"rows": "$read.rows", "who": 1}},
            {"id": "two", "tool_type": "measure", "arguments": {"rows": "$read.rows", "who": 2}},
        ]});
        let text = if request.schema.is_some() { plan.to_string() } else { "Measured.".to_owned() };
        Box::pin(stream::iter([Ok(ModelEvent::Text(text))]))
    }
}

/// Returns a large value, or the size of its arguments.
struct LargeValueTool {
    spec: ToolSpec,
    received: Arc<AtomicUsize>,
}

impl Tool for LargeValueTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            if *self.spec.name == *"measure" {
                let size = request.arguments.get().len();
                self.received.fetch_add(size, Ordering::Relaxed);
                return Ok(ToolOutput::json(json!({ "size": size })));
            }
            let row = format!("\"{}\"", "row of a table ".repeat(700));
            let rows = vec![row; result_bytes() / 10_500];
            let text = format!("{{\"rows\":[{}]}}", rows.join(","));
            let structured = RawJson::parse(text).unwrap();
            Ok(ToolOutput { structured: Some(structured), ..ToolOutput::text("many rows") })
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_results_are_passed_by_reference() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
    let (hub, received) = (ToolHub::default(), Arc::new(AtomicUsize::new(0)));
    let tool = |name: &str, description: &str| {
        let spec =
            ToolSpec::new(name, description).with_hints(ToolHints::READ_ONLY).without_inferred_capabilities();
        Arc::new(LargeValueTool { spec, received: Arc::clone(&received) }) as Arc<dyn Tool>
    };
    let tools = vec![tool("read_all", "Reads all rows of a file"), tool("measure", "Measures rows")];
    hub.register(SourceInfo::new("desk", SourceKind::Mcp).trusted(true), tools);
    let model = Arc::new(Planner::default());
    let agent = Agent::new(AgentParts {
        config: Arc::new(AgentConfig::new("assistant")),
        hub: Arc::new(hub),
        model: Arc::clone(&model) as Arc<dyn Model>,
        log: Arc::new(store.clone()),
        approvals: Arc::new(store.clone()),
        rules: ApprovalRules::default(),
        result_shapes: None,
        argument_examples: None,
        counter: Arc::new(O200k),
        owner: "test".to_owned(),
    });
    let start = Instant::now();
    let request = RunRequest { question: "read all and measure it".to_owned(), ..RunRequest::default() };
    let (_, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    let (prompt, received) = (model.longest_prompt.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
    println!(
        "{} MB passed to two steps in {:.1} s; the longest prompt had {prompt} characters",
        received >> 20,
        start.elapsed().as_secs_f64()
    );
    assert!(received > 2 * (result_bytes() - (1 << 20)), "both steps received the whole value");
    assert!(prompt < 20_000);
}
