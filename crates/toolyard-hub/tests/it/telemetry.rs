//! Operations that the hub reports: one for each call, whatever its end.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, SourceInfo, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
    telemetry::{CallContent, Operation, OperationKind, RecordingTelemetry, SpanContext, Telemetry},
};
use toolyard_hub::{CallOptions, HubConfig, ToolHub};

/// Echoes the span of its call, fails or hangs, by its name.
#[derive(Debug)]
struct TestTool(ToolSpec);

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match &*self.0.name {
                "fails" => Err(ToolError::failed("no")),
                "hangs" => std::future::pending().await,
                _ => Ok(ToolOutput::text(context.span.map(|span| span.to_string()).unwrap_or_default())),
            }
        })
    }
}

fn recording_hub() -> (ToolHub, Arc<RecordingTelemetry>) {
    let telemetry = Arc::new(RecordingTelemetry::default());
    let hub =
        ToolHub::new(HubConfig { telemetry: Some(Arc::clone(&telemetry) as _), ..HubConfig::default() });
    let tool = |name: &str| Arc::new(TestTool(ToolSpec::new(name, "A test"))) as Arc<dyn Tool>;
    hub.register(SourceInfo::native(), vec![tool("echo"), tool("fails"), tool("hangs")]);
    (hub, telemetry)
}

fn describe(operation: &Operation) -> (String, Option<String>, u32, Option<String>) {
    let OperationKind::ToolCall { tool, source, attempts, content, .. } = &operation.kind else {
        panic!("{operation:?}")
    };
    assert_eq!(*content, None, "content is not captured unless it is asked for");
    let source = source.as_ref().map(ToString::to_string);
    (tool.to_string(), source, *attempts, operation.error_type.as_ref().map(ToString::to_string))
}

#[tokio::test]
async fn the_tool_gets_the_span_of_the_call_in_the_trace_of_the_caller() {
    let (hub, telemetry) = recording_hub();
    let parent = SpanContext::root();
    let options = CallOptions::default().caused_by(Some(parent));
    let output = hub.execute(&ToolCallRequest::new("echo", json!({})), &options).await.unwrap();
    let [operation] = telemetry.take().try_into().unwrap();
    let span = operation.span.unwrap();
    assert_eq!((span.parent, span.context.trace_id), (Some(parent), parent.trace_id));
    assert_eq!(output.to_text(), span.context.to_string());
    assert_eq!(describe(&operation), ("echo".into(), Some("native".into()), 1, None));
}

#[tokio::test]
async fn failed_unknown_and_cancelled_calls_are_reported_once() {
    let (hub, telemetry) = recording_hub();
    let options = CallOptions::default();
    for tool in ["fails", "no_such_tool"] {
        let _: ToolError = hub.execute(&ToolCallRequest::new(tool, json!({})), &options).await.unwrap_err();
    }
    let hanging = ToolCallRequest::new("hangs", json!({}));
    let hanging = tokio::time::timeout(Duration::from_millis(20), hub.execute(&hanging, &options));
    hanging.await.unwrap_err();
    let operations: Vec<_> = telemetry.take().iter().map(describe).collect();
    let native = || Some("native".to_owned());
    assert_eq!(
        operations,
        [
            ("fails".into(), native(), 1, Some("tool_error".into())),
            ("no_such_tool".into(), None, 0, Some("unknown_tool".into())),
            ("hangs".into(), native(), 1, Some("cancelled".into())),
        ]
    );
}

#[tokio::test]
async fn calls_of_one_tool_have_one_name_however_it_is_requested() {
    let (hub, telemetry) = recording_hub();
    for source in [None, Some("native".to_owned())] {
        let mut call = ToolCallRequest::new("echo", json!({}));
        call.source = source;
        let _: Result<ToolOutput, ToolError> = hub.execute(&call, &CallOptions::default()).await;
    }
    let operations: Vec<_> = telemetry.take().iter().map(describe).collect();
    assert_eq!(operations, vec![("echo".into(), Some("native".into()), 1, None); 2]);
}

/// Captures content, and leaves the decision about sampling to the caller.
#[derive(Debug, Default)]
struct CapturingTelemetry(RecordingTelemetry);

impl Telemetry for CapturingTelemetry {
    fn start_span(&self, parent: Option<&SpanContext>) -> Option<SpanContext> {
        self.0.start_span(parent)
    }

    fn record(&self, operation: Box<Operation>) {
        self.0.record(operation);
    }

    fn captures_content(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn the_span_of_a_call_has_its_id_if_the_trace_is_sampled() {
    let (hub, telemetry) = recording_hub();
    let request = ToolCallRequest::new("echo", json!({}));
    let sampled = SpanContext::root();
    for parent in [sampled, SpanContext { is_sampled: false, ..sampled }] {
        let options = CallOptions::default().caused_by(Some(parent));
        let _: Result<ToolOutput, ToolError> = hub.execute(&request, &options).await;
    }
    let ids = telemetry.take().into_iter().map(|operation| match operation.kind {
        OperationKind::ToolCall { call, .. } => call,
        other => panic!("{other:?}"),
    });
    assert_eq!(ids.collect::<Vec<_>>(), [Some(request.id.clone()), None]);
}

#[tokio::test]
async fn content_is_captured_for_sampled_traces_only_and_is_limited() {
    let telemetry = Arc::new(CapturingTelemetry::default());
    let hub =
        ToolHub::new(HubConfig { telemetry: Some(Arc::clone(&telemetry) as _), ..HubConfig::default() });
    hub.register(SourceInfo::native(), vec![Arc::new(TestTool(ToolSpec::new("echo", "A test")))]);
    let request = ToolCallRequest::new("echo", json!({"text": "é".repeat(1 << 20)}));
    let sampled = SpanContext::root();
    for parent in [sampled, SpanContext { is_sampled: false, ..sampled }] {
        let options = CallOptions::default().caused_by(Some(parent));
        let _: Result<ToolOutput, ToolError> = hub.execute(&request, &options).await;
    }
    let contents = telemetry.0.take().into_iter().map(|operation| match operation.kind {
        OperationKind::ToolCall { content, .. } => content,
        other => panic!("{other:?}"),
    });
    let contents: Vec<Option<Box<CallContent>>> = contents.collect();
    let [Some(content), None] = contents.as_slice() else { panic!("{contents:?}") };
    assert_eq!(content.arguments, None, "secrets cannot be found in a part of them");
    assert!(content.result.starts_with("00-"), "{content:?}");
}

#[tokio::test]
async fn without_telemetry_the_span_of_the_caller_is_passed_on() {
    let hub = ToolHub::default();
    hub.register(SourceInfo::native(), vec![Arc::new(TestTool(ToolSpec::new("echo", "A test")))]);
    let parent = SpanContext::root();
    let options = CallOptions::default().caused_by(Some(parent));
    let output = hub.execute(&ToolCallRequest::new("echo", json!({})), &options).await.unwrap();
    assert_eq!(output.to_text(), parent.to_string());
}
