//! Operations that are reported for requests: their parents, their errors, and that each is reported once.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolyard_core::telemetry::{Operation, OperationKind, RecordingTelemetry, SpanContext, Transport};

use crate::{
    client::{Client, MODERN_REVISION},
    memory_cluster::MemoryCluster,
    test_server::{ServerBuilder, TestServer},
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

async fn recording_server() -> (TestServer, Arc<RecordingTelemetry>) {
    let telemetry = Arc::new(RecordingTelemetry::default());
    let mut builder = ServerBuilder::default();
    builder.config.telemetry = Some(Arc::clone(&telemetry) as _);
    (builder.build().await, telemetry)
}

/// Waits for this many operations.
async fn recorded(telemetry: &RecordingTelemetry, count: usize) -> Vec<Operation> {
    let waiting = async {
        while telemetry.operations().len() < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap();
    telemetry.take()
}

fn describe(operation: &Operation) -> (&str, Option<&str>, &str, Option<&str>) {
    let OperationKind::ServerRequest { method, target, revision, transport, caller, client, .. } =
        &operation.kind
    else {
        panic!("{operation:?}")
    };
    assert_eq!((*transport, client.as_deref()), (Transport::Http, Some("tester")));
    assert_eq!(*caller, None, "what a client says of itself is not its caller");
    (method, target.as_deref(), revision, operation.error_type.as_deref())
}

#[tokio::test]
async fn a_request_continues_the_trace_of_its_client_in_both_revisions() {
    let (server, telemetry) = recording_server().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let params = json!({"name": "echo", "arguments": {}, "_meta": {"traceparent": PARENT, "baggage": "a=b"}});
    client.request_legacy(1, "tools/call", params.clone()).await;
    client.request_modern(2, "tools/call", params, json!({})).await;
    let operations = recorded(&telemetry, 3).await;
    let described: Vec<_> = operations.iter().map(describe).collect();
    assert_eq!(
        described,
        [
            ("initialize", None, "2025-11-25", None),
            ("tools/call", Some("echo"), "2025-11-25", None),
            ("tools/call", Some("echo"), MODERN_REVISION, None),
        ]
    );
    let parent: SpanContext = PARENT.parse().unwrap();
    let calls = server.tools.calls.lock().clone();
    for (operation, call) in operations[1..].iter().zip(calls) {
        let span = operation.span.unwrap();
        assert_eq!((span.parent, span.context.trace_id), (Some(parent), parent.trace_id));
        let caller = call.caller.unwrap();
        assert_eq!(caller.span(), Some(span.context), "the tool is called by the span of the request");
        assert_eq!(caller.trace_context()[1], ("baggage".to_owned(), "a=b".to_owned()));
    }
    server.close().await;
}

#[tokio::test]
async fn a_request_without_a_trace_belongs_to_that_of_its_http_request() {
    const OTHER_PARENT: &str = "00-11111111111111111111111111111111-2222222222222222-01";
    let (server, telemetry) = recording_server().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    telemetry.take();
    for (meta, expected) in [(json!({}), OTHER_PARENT), (json!({"traceparent": PARENT}), PARENT)] {
        let params = json!({"name": "echo", "arguments": {}, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let response = client.post().header("traceparent", OTHER_PARENT).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let operations = recorded(&telemetry, 1).await;
        assert_eq!(operations[0].span.unwrap().parent, Some(expected.parse().unwrap()));
    }
    server.close().await;
}

#[tokio::test]
async fn errors_of_tools_and_of_the_protocol_have_types() {
    let (server, telemetry) = recording_server().await;
    let client = Client::new(&server.address);
    let call = |name: &str| json!({"name": name, "arguments": {}});
    let long_name = "x".repeat(10_000);
    for (method, params) in [
        ("tools/call", call("failed")),
        ("tools/call", call("raw_result")),
        ("tools/call", call("raw_error")),
        ("tools/call", call("no_such_tool")),
        ("tools/call", json!({"name": 7})),
        ("made/up", call(&long_name)),
    ] {
        client.request_modern(1, method, params, json!({})).await;
    }
    let operations = recorded(&telemetry, 6).await;
    let errors: Vec<_> =
        operations.iter().map(|operation| (describe(operation).0, describe(operation).3.unwrap())).collect();
    assert_eq!(
        errors,
        [
            ("tools/call", "tool_error"),
            ("tools/call", "tool_error"),
            ("tools/call", "-31999"),
            ("tools/call", "-32602"),
            ("tools/call", "-32602"),
            ("_OTHER", "-32601"),
        ]
    );
    assert_eq!(describe(&operations[5]).1.unwrap().len(), 256);
    server.close().await;
}

#[tokio::test]
async fn disconnected_and_cancelled_requests_are_recorded_once() {
    let (server, telemetry) = recording_server().await;
    let client = Client::new(&server.address);
    let calling = tokio::spawn(async move { client.call(1, "slow", json!({})).await });
    server.tools.wait_for_started(1).await;
    calling.abort();
    let operations = recorded(&telemetry, 1).await;
    assert_eq!(describe(&operations[0]).3, Some("cancelled"));

    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    for (id, ends) in [(1, "cancelled"), (2, "finished")] {
        telemetry.take();
        let caller = client.clone();
        let calling =
            tokio::spawn(
                async move { caller.request_legacy(id, "tools/call", json!({"name": "slow"})).await },
            );
        server.tools.wait_for_started(usize::try_from(id).unwrap() + 1).await;
        calling.abort();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(telemetry.operations().len(), 0, "a legacy call survives its connection");
        if ends == "cancelled" {
            client.notify("notifications/cancelled", json!({"requestId": id})).await;
        } else {
            server.tools.release.notify_one();
        }
        let operations = recorded(&telemetry, 1).await;
        assert_eq!(describe(&operations[0]).3, (ends == "cancelled").then_some(ends));
    }
    server.close().await;
    assert_eq!(telemetry.take().len(), 0);
}

#[tokio::test]
async fn a_suspended_call_and_its_continuation_are_two_requests() {
    let (server, telemetry) = recording_server().await;
    let client = Client::new(&server.address);
    let capabilities = json!({"elicitation": {"form": {}}});
    let first = client.call(1, "ask_twice", capabilities.clone()).await;
    let state = first.result()["requestState"].clone();
    let accept = |value: &str| json!({"action": "accept", "content": {"value": value}});
    let responses: Value = json!({"first": accept("one"), "second": accept("two")});
    let params = json!({"name": "ask_twice", "arguments": {}, "requestState": state, "inputResponses": responses,
        "_meta": {"traceparent": PARENT}});
    let done = client.request_modern(2, "tools/call", params, capabilities).await;
    assert_eq!(done.text(), "one two");
    let operations = recorded(&telemetry, 2).await;
    let described: Vec<_> = operations.iter().map(describe).collect();
    assert_eq!(described, [("tools/call", Some("ask_twice"), MODERN_REVISION, None); 2]);
    assert_eq!(operations[0].span.unwrap().parent, None);
    assert_eq!(operations[1].span.unwrap().parent, Some(PARENT.parse().unwrap()));
    server.close().await;
}

#[tokio::test]
async fn a_call_that_another_server_continues_is_recorded_where_its_client_is() {
    let cluster = Arc::<MemoryCluster>::default();
    let (first, second): (Arc<RecordingTelemetry>, Arc<RecordingTelemetry>) = Default::default();
    let start = async |number, telemetry: &Arc<RecordingTelemetry>| {
        let mut builder = ServerBuilder::default();
        builder.config.telemetry = Some(Arc::clone(telemetry) as _);
        cluster.start(number, builder).await
    };
    let servers = [start(1, &first).await, start(2, &second).await];
    let capabilities = json!({"elicitation": {"form": {}}});
    let asked = Client::new(&servers[0].address).call(1, "ask_then_fail", capabilities.clone()).await;
    recorded(&first, 1).await;
    let responses = json!({"name": {"action": "accept", "content": {"value": "Ann"}}});
    let params = json!({"name": "ask_then_fail", "arguments": {}, "requestState": asked.result()["requestState"],
        "inputResponses": responses});
    Client::new(&servers[1].address).request_modern(2, "tools/call", params, capabilities).await;
    let operations = recorded(&second, 1).await;
    let expected = ("tools/call", Some("ask_then_fail"), MODERN_REVISION, Some("tool_error"));
    assert_eq!(operations.iter().map(describe).collect::<Vec<_>>(), [expected]);
    assert!(first.operations().is_empty());
    for server in servers {
        server.close().await;
    }
}

#[tokio::test]
async fn a_change_stream_ends_without_an_error() {
    let (server, telemetry) = recording_server().await;
    let client = Client::new(&server.address);
    let params = json!({"notifications": {"toolsListChanged": true}});
    let stream = client.send_modern(1, "subscriptions/listen", params, json!({})).await;
    assert!(stream.status().is_success());
    drop(stream);
    let operations = recorded(&telemetry, 1).await;
    assert_eq!(describe(&operations[0]).0, "subscriptions/listen");
    assert_eq!(describe(&operations[0]).3, None);
    server.close().await;
}
