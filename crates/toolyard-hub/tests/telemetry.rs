//! Operations that the hub reports: one for each call, whatever its end.

#![expect(clippy::panic, reason = "a panic fails the test, as intended")]

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, SourceInfo, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
    telemetry::{Operation, OperationKind, RecordingTelemetry, SpanContext},
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
    let OperationKind::ToolCall { tool, source, attempts, content } = &operation.kind else {
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
            ("hangs".into(), None, 1, Some("cancelled".into())),
        ]
    );
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
