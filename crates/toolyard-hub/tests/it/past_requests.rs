//! The request behind a successful call is recorded under the tool's own name, without secrets.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, CallerIdentity, Capability, DataOwner, ErrorKind, PastRequest, PastRequests,
    SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
};
use toolyard_hub::{Budget, CallOptions, HubConfig, ToolHub};

#[derive(Default)]
struct RecordedRequests(Mutex<Vec<PastRequest>>);

impl PastRequests for RecordedRequests {
    fn record(&self, past: PastRequest) {
        self.0.lock().push(past);
    }

    fn recent(&self, _limit: usize) -> Vec<PastRequest> {
        self.0.lock().clone()
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

fn caller(name: &str) -> (DataOwner, CallOptions) {
    let identity = Arc::new(CallerIdentity::principal("https://issuer", name));
    let owner = DataOwner::of(Some(&*identity));
    (owner, CallOptions::default().on_behalf_of_identity(Some(identity)))
}

#[tokio::test]
async fn requests_of_one_caller_change_no_search_of_another() {
    let (hub, memory) = hub();
    let ((ada, of_ada), (eve, _)) = (caller("ada"), caller("eve"));
    let call = ToolCallRequest::new("get_weather", json!({}));
    // Before the first search, which reads the stored requests, and after it.
    for request in ["shall I take boots", "is it time for galoshes"] {
        hub.execute(&call, &of_ada.clone().for_user_request(request)).await.unwrap();
        let history_score = |owner| {
            let found = hub.search_for(owner, request, 9);
            found.iter().map(|hit| hit.history_score).fold(0.0, f32::max)
        };
        assert!(history_score(ada) > 0.0, "{request}");
        for other in [eve, DataOwner::Operator] {
            assert!(history_score(other) == 0.0, "{request}");
        }
    }
    assert!(memory.recent(9).iter().all(|past| past.owner == ada));
}

#[tokio::test]
async fn the_whole_of_a_truncated_result_is_its_callers() {
    let (hub, _) = hub();
    let ((ada, of_ada), (eve, _)) = (caller("ada"), caller("eve"));
    let call = ToolCallRequest::new("get_weather", json!({}));
    let output = hub.execute(&call, &of_ada.with_budget(Budget::Characters(2))).await.unwrap();
    let reference = output.meta.truncation.unwrap().reference.unwrap();
    let read = async |reader| hub.results().read(&reference, reader, 0, 99).await;
    assert_eq!(read(ada).await.unwrap().text, "sunny");
    assert_eq!(read(DataOwner::Operator).await.unwrap().text, "sunny");
    assert!(read(eve).await.is_err());
}
