//! The request behind a successful call is recorded under the tool's own name, without secrets.

#![expect(clippy::unwrap_used, reason = "a panic in a test helper fails the test, as intended")]

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, Capability, ErrorKind, PastRequest, PastRequests, SourceInfo, SourceKind, Tool,
    ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
};
use toolyard_hub::{CallOptions, HubConfig, ToolHub};

#[derive(Default)]
struct RecordedRequests(Mutex<Vec<PastRequest>>);

impl PastRequests for RecordedRequests {
    fn record(&self, past: PastRequest) {
        self.0.lock().unwrap().push(past);
    }

    fn recent(&self, _limit: usize) -> Vec<PastRequest> {
        self.0.lock().unwrap().clone()
    }
}

/// A tool that succeeds if the second field is true, else fails.
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

fn hub() -> (ToolHub, Arc<RecordedRequests>) {
    let memory = Arc::new(RecordedRequests::default());
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

fn recorded(memory: &RecordedRequests) -> Vec<(String, String, String)> {
    let past = memory.recent(usize::MAX).into_iter();
    past.map(|past| (past.tool, past.source.to_string(), past.request)).collect()
}

#[tokio::test]
async fn only_successful_calls_for_a_request_are_recorded() {
    let (hub, memory) = hub();
    let call = |name: &str| ToolCallRequest::new(name, json!({}));
    let options = CallOptions::default().for_user_request("do I need boots? my password=hunter2");
    hub.execute(&call("get_weather"), &CallOptions::default()).await.unwrap();
    assert!(hub.execute(&call("broken"), &options).await.is_err());
    assert!(recorded(&memory).is_empty());

    hub.execute(&call("get_weather"), &options).await.unwrap();
    let redacted = "do I need boots? my password=[redacted:assignment]".to_owned();
    assert_eq!(recorded(&memory), [("get_weather".to_owned(), "sky".to_owned(), redacted)]);
}

#[tokio::test]
async fn a_call_by_capability_is_recorded_under_the_tool_that_answered() {
    let (hub, memory) = hub();
    let options = CallOptions::default().for_user_request("boots?");
    let capability =
        hub.snapshot().capabilities().first().cloned().unwrap_or_else(|| Capability::from("weather"));
    hub.execute_by_capability(&capability, json!({}).into(), &options).await.unwrap();
    let tools: Vec<String> = recorded(&memory).into_iter().map(|(tool, _, _)| tool).collect();
    assert_eq!(tools, ["get_weather"]);
}
