//! What requests to a server report to telemetry.

use serde_json::{Value, json};
use toolyard_core::{
    RawJson,
    telemetry::{Operation, RecordingTelemetry},
};
use toolyard_mcp::JsonObject;

use super::*;
use crate::{
    config::HttpKind,
    lifecycle::connect::{ConnectOptions, ConnectTarget, connect},
    session::{handle::Session, tool_call::ToolCall},
    transport::http::{
        target::HttpTarget,
        test_server::{ReceivedRequest, Reply, TestServer},
    },
};

/// A modern server whose tools return what their name says: an object, or a text that is no valid result.
async fn start_server() -> TestServer {
    TestServer::start(|request: ReceivedRequest, mut reply: Reply| async move {
        let body = request.json();
        let result = match (body["method"].as_str(), body["params"]["name"].as_str()) {
            (Some("server/discover"), _) => json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
            (_, Some("text")) => Value::from("no object"),
            _ => json!({"resultType": "complete", "content": []}),
        };
        reply.json(request.response(&result)).await;
        Some(reply)
    })
    .await
}

async fn connect_for(
    server: &TestServer,
    telemetry: &Arc<RecordingTelemetry>,
    cause: Option<SpanContext>,
) -> Session {
    let target = ConnectTarget::Http(HttpTarget::new(&server.url, []).unwrap(), HttpKind::Streamable);
    let telemetry = Some(Arc::clone(telemetry) as Arc<dyn Telemetry>);
    connect(target, &ConnectOptions { telemetry, cause, ..ConnectOptions::new("odd") }).await.unwrap()
}

fn describe(operation: &Operation) -> (&str, Option<usize>, bool, Option<&str>) {
    let OperationKind::ClientRequest { method, target, request_id, .. } = &operation.kind else {
        panic!("{operation:?}")
    };
    let target_length = target.as_ref().map(|target| target.len());
    (method, target_length, request_id.is_some(), operation.error_type.as_deref())
}

#[tokio::test]
async fn a_start_belongs_to_its_cause_and_later_requests_of_the_session_to_nothing() {
    let (server, telemetry) = (start_server().await, Arc::new(RecordingTelemetry::default()));
    let cause = SpanContext::root();
    let session = connect_for(&server, &telemetry, Some(cause)).await;
    let [start] = telemetry.take().try_into().unwrap();
    assert_eq!(describe(&start), ("server/discover", None, true, None));
    assert_eq!(start.span.unwrap().parent, Some(cause));

    session.inner.telemetry.as_ref().unwrap().forget_cause();
    session.inner.request(OutgoingRequest::new("ping", JsonObject::new())).await.unwrap();
    let arguments = RawJson::empty_object();
    session.call_tool(ToolCall::new("add", &arguments)).await.unwrap();
    let [ping, call] = telemetry.take().try_into().unwrap();
    assert_eq!((describe(&ping).0, ping.span), ("ping", None), "it is counted, but no trace of its own");
    assert_eq!(call.span.unwrap().parent, None, "a call that nobody traces is a trace of its own");
}

#[tokio::test]
async fn failures_before_and_after_the_exchange_are_reported_as_what_they_are() {
    let (server, telemetry) = (start_server().await, Arc::new(RecordingTelemetry::default()));
    let session = connect_for(&server, &telemetry, None).await;
    telemetry.take();
    let (arguments, long_name) = (RawJson::empty_object(), "x".repeat(10_000));
    session.call_tool(ToolCall::new("text", &arguments)).await.unwrap_err();
    session.call_tool(ToolCall::new(&long_name, &arguments)).await.unwrap();
    session.close().await;
    session.call_tool(ToolCall::new("add", &arguments)).await.unwrap_err();
    let operations = telemetry.take();
    let calls: Vec<_> =
        operations.iter().map(describe).filter(|(method, ..)| *method == "tools/call").collect();
    assert_eq!(
        calls,
        [
            ("tools/call", Some(4), true, Some("invalid_response")),
            ("tools/call", Some(256), true, None),
            ("tools/call", Some(3), false, Some("unreachable")),
        ]
    );
}
