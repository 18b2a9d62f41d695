//! What a tool was used for is remembered when it succeeded, under its own name, without secrets.

#![expect(clippy::unwrap_used, reason = "a test helper fails its test")]

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, Capability, ErrorKind, PastRequest, PastRequests, SourceInfo, SourceKind, Tool,
    ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
};
use toolyard_hub::{CallOptions, HubConfig, ToolHub};

#[derive(Default)]
struct Memory(Mutex<Vec<PastRequest>>);

impl PastRequests for Memory {
    fn record(&self, past: PastRequest) {
        self.0.lock().unwrap().push(past);
    }

    fn recent(&self, _limit: usize) -> Vec<PastRequest> {
        self.0.lock().unwrap().clone()
    }
}

/// A forecast that works, or does not.
struct Forecast(ToolSpec, bool);

impl Tool for Forecast {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let refused = ToolError::new(ErrorKind::Refused, "no");
        Box::pin(async move { if self.1 { Ok(ToolOutput::text("sunny")) } else { Err(refused) } })
    }
}

fn hub() -> (ToolHub, Arc<Memory>) {
    let memory = Arc::new(Memory::default());
    let hub =
        ToolHub::new(HubConfig { past_requests: Some(Arc::clone(&memory) as _), ..HubConfig::default() });
    let forecast = |name: &str, works| -> Arc<dyn Tool> {
        let spec = ToolSpec::new(name, "Tells the weather").with_hints(ToolHints::READ_ONLY);
        Arc::new(Forecast(spec, works))
    };
    let source = SourceInfo::new("sky", SourceKind::Mcp).trusted(true);
    hub.register(source, vec![forecast("get_weather", true), forecast("broken", false)]);
    (hub, memory)
}

fn remembered(memory: &Memory) -> Vec<(String, String, String)> {
    let past = memory.recent(usize::MAX).into_iter();
    past.map(|past| (past.tool, past.source.to_string(), past.request)).collect()
}

#[tokio::test]
async fn only_what_succeeded_for_a_request_is_remembered() {
    let (hub, memory) = hub();
    let call = |name: &str| ToolCallRequest::new(name, json!({}));
    let options = CallOptions::default().for_request("do I need boots? my password=hunter2");
    hub.execute(&call("get_weather"), &CallOptions::default()).await.unwrap();
    hub.execute(&call("broken"), &options).await.unwrap_err();
    assert!(remembered(&memory).is_empty());

    hub.execute(&call("get_weather"), &options).await.unwrap();
    let kept = "do I need boots? my password=[redacted:assignment]".to_owned();
    assert_eq!(remembered(&memory), [("get_weather".to_owned(), "sky".to_owned(), kept)]);
}

#[tokio::test]
async fn by_capability_it_is_the_tool_that_answered() {
    let (hub, memory) = hub();
    let options = CallOptions::default().for_request("boots?");
    let capability =
        hub.snapshot().capabilities().first().cloned().unwrap_or_else(|| Capability::from("weather"));
    hub.execute_by_capability(&capability, json!({}).into(), &options).await.unwrap();
    let tools: Vec<String> = remembered(&memory).into_iter().map(|(tool, _, _)| tool).collect();
    assert_eq!(tools, ["get_weather"]);
}
