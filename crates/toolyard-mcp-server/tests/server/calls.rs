//! Tool calls in all revisions: results, events and errors.

use serde_json::json;
use toolyard_core::RawJson;

use crate::{client::Client, test_server::TestServer};

#[tokio::test]
async fn a_result_is_passed_on_unchanged_in_all_revisions() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let arguments = json!({"b": 1, "a": [1.5, {"x": "ü"}]});
    let answer = client
        .request_modern(7, "tools/call", json!({"name": "echo", "arguments": arguments}), json!({}))
        .await;
    assert_eq!((answer.status.as_u16(), answer.content_type.as_str()), (200, "application/json"));
    assert_eq!(answer.last()["id"], 7);
    assert_eq!(answer.text(), arguments.to_string());
    assert_eq!(answer.result()["resultType"], "complete");
    assert_eq!(answer.result()["x-kept"].to_string(), "1.0");

    let client = client.initialize("2025-06-18", json!({})).await;
    let answer =
        client.request_legacy(8, "tools/call", json!({"name": "echo", "arguments": arguments})).await;
    assert_eq!(answer.text(), arguments.to_string());
    assert_eq!(answer.result().get("resultType"), None);
    assert_eq!(server.tools.calls.lock()[1].caller_name.as_ref(), "tester");
    server.close().await;
}

#[tokio::test]
async fn call_meta_is_forwarded_to_the_tools_server() {
    let server = TestServer::new().await;
    let modern = Client::new(&server.address);
    let legacy = modern.clone().initialize("2025-11-25", json!({})).await;
    let further = json!({"com.example/tenant": {"id": [1, "\u{200b}"]}, "plain": null});
    let mut used_and_further = json!({"progressToken": 7, "traceparent": "00-1-2-03"});
    used_and_further.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
    for (meta, expected) in [
        (used_and_further, Some(further)),
        (json!({"progressToken": 7}), None),
        (json!({}), None),
        (json!({"large": "x".repeat(16 << 10), "small": 1}), None),
    ] {
        let params = json!({"name": "echo", "arguments": {}, "_meta": meta});
        legacy.request_legacy(1, "tools/call", params.clone()).await.result();
        modern.request_modern(2, "tools/call", params, json!({})).await.result();
        for call in server.tools.calls.lock().drain(..) {
            let caller = call.caller.unwrap();
            assert_eq!(caller.request_meta().map(RawJson::to_value), expected);
        }
    }
    server.close().await;
}

#[tokio::test]
async fn large_and_multiline_results_arrive_complete() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let answer = client.request_legacy(1, "tools/call", json!({"name": "large"})).await;
    assert_eq!(answer.text().len(), 200_000);
    let answer = client.request_legacy(2, "tools/call", json!({"name": "pretty"})).await;
    assert_eq!(answer.text(), "a\nb");
    server.close().await;
}

#[tokio::test]
async fn only_progress_turns_the_response_into_a_stream() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let params = json!({"name": "progress", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let answer = client.request_modern(1, "tools/call", params.clone(), json!({})).await;
    assert_eq!(answer.content_type, "text/event-stream");
    let progress: Vec<_> = answer.messages.iter().take(2).map(|message| message["params"].clone()).collect();
    assert_eq!(
        progress[0],
        json!({"progressToken": "mine", "progress": 1.0, "total": 2.0, "message": "working"})
    );
    assert_eq!(progress[1]["progress"], 2.0);
    assert_eq!(answer.text(), "done");

    let answer = client.call(2, "progress", json!({})).await;
    assert_eq!((answer.content_type.as_str(), answer.text()), ("application/json", "done"));

    let client = client.initialize("2024-11-05", json!({})).await;
    let answer = client.request_legacy(3, "tools/call", params).await;
    assert_eq!(answer.messages.len(), 3);
    assert_eq!(answer.messages[0]["params"].get("message"), None);
    server.close().await;
}

#[tokio::test]
async fn a_client_that_accepts_no_events_gets_json() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "progress", "_meta": {"progressToken": 1}}});
    let request = client.request(reqwest::Method::POST).header("Accept", "application/json").json(&body);
    let answer = crate::client::read(request.send().await.unwrap()).await;
    assert_eq!((answer.content_type.as_str(), answer.text()), ("application/json", "done"));
    let request = client.request(reqwest::Method::POST).header("Accept", "text/event-stream").json(&body);
    let answer = crate::client::read(request.send().await.unwrap()).await;
    assert_eq!((answer.content_type.as_str(), answer.messages.len()), ("text/event-stream", 3));
    server.close().await;
}

#[tokio::test]
async fn log_messages_respect_the_level_of_the_client() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    assert_eq!(client.call(1, "log", json!({})).await.messages.len(), 1);
    let params = json!({"name": "log", "_meta": {"io.modelcontextprotocol/logLevel": "error"}});
    let answer = client.request_modern(2, "tools/call", params, json!({})).await;
    assert_eq!(answer.messages[0]["params"], json!({"level": "error", "data": "a error"}));
    assert_eq!(answer.messages.len(), 2);

    let client = client.initialize("2025-11-25", json!({})).await;
    let log = json!({"name": "log"});
    assert_eq!(client.request_legacy(1, "tools/call", log.clone()).await.messages.len(), 3);
    client.request_legacy(2, "logging/setLevel", json!({"level": "debug"})).await.result();
    assert_eq!(client.request_legacy(3, "tools/call", log).await.messages.len(), 4);
    assert_eq!(client.request_legacy(4, "logging/setLevel", json!({"level": "loud"})).await.code(), -32602);
    server.close().await;
}

#[tokio::test]
async fn a_flood_of_notifications_is_bounded() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let answer = client
        .request_legacy(1, "tools/call", json!({"name": "chatty", "arguments": {"count": 50_000}}))
        .await;
    assert_eq!(answer.messages.len(), 1_025);
    assert_eq!(answer.text(), "done");
    server.close().await;
}

#[tokio::test]
async fn errors_follow_the_revision() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let failed = client.call(1, "failed", json!({})).await;
    assert_eq!(failed.result()["isError"], true);
    assert_eq!(failed.text(), "it broke\nhint: repair it");
    assert_eq!(client.call(2, "raw_result", json!({})).await.result()["kept"], true);
    let raw = client.call(3, "raw_error", json!({})).await;
    assert_eq!(raw.last()["error"], json!({"code": -31999, "message": "mine", "data": {"a": 1}}));
    let missing = client.call(3, "raw_missing", json!({})).await;
    assert_eq!((missing.status.as_u16(), missing.code()), (400, -32021));
    let unknown = client.call(4, "ehco", json!({})).await;
    assert_eq!(unknown.code(), -32602);
    assert_eq!(unknown.last()["error"]["message"], "tool `ehco` does not exist; did you mean `echo`?");

    let invalid = json!({"name": "invalid"});
    let newer = client.clone().initialize("2025-11-25", json!({})).await;
    assert_eq!(newer.request_legacy(1, "tools/call", invalid.clone()).await.result()["isError"], true);
    let older = client.initialize("2025-06-18", json!({})).await;
    assert_eq!(older.request_legacy(1, "tools/call", invalid).await.code(), -32602);
    server.close().await;
}

#[tokio::test]
async fn non_objects_are_wrapped_and_truncated_results_linked() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let numbers = client.request_legacy(1, "tools/call", json!({"name": "numbers"})).await;
    assert_eq!(numbers.result()["structuredContent"], json!({"result": [1, 2]}));
    let truncated = client.request_legacy(2, "tools/call", json!({"name": "truncated"})).await;
    let link = &truncated.result()["content"][1];
    assert_eq!(
        (link["type"].as_str(), link["uri"].as_str()),
        (Some("resource_link"), Some("toolyard://results/r_1"))
    );
    let old = Client::new(&server.address).initialize("2025-03-26", json!({})).await;
    let truncated = old.request_legacy(1, "tools/call", json!({"name": "truncated"})).await;
    assert_eq!(truncated.result()["content"].as_array().unwrap().len(), 1);
    server.close().await;
}

#[tokio::test]
async fn a_result_says_whether_its_structured_content_was_shortened() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let shortened = client.call(1, "shortened", json!({})).await;
    assert_eq!(shortened.result()["structuredContent"], json!({"rows": [1]}));
    assert_eq!(shortened.result()["_meta"], json!({"toolyard/structuredTruncated": true}));
    assert_eq!(client.call(2, "numbers", json!({})).await.result().get("_meta"), None);
    let legacy = client.initialize("2025-06-18", json!({})).await;
    let shortened = legacy.request_legacy(3, "tools/call", json!({"name": "shortened"})).await;
    assert_eq!(shortened.result()["_meta"], json!({"toolyard/structuredTruncated": true}));
    server.close().await;
}

#[tokio::test]
async fn tools_describe_returns_one_definition() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let found = client.request_modern(1, "tools/describe", json!({"name": "tool_00001"}), json!({})).await;
    assert_eq!(found.result()["tool"]["name"], "tool_00001");
    let missing = client.request_modern(2, "tools/describe", json!({"name": "nothing"}), json!({})).await;
    assert_eq!(missing.code(), -32602);
    server.close().await;
}

#[tokio::test]
async fn unknown_methods_and_invalid_parameters_are_rejected() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let unknown = client.request_modern(1, "tools/cal", json!({}), json!({})).await;
    assert_eq!((unknown.status.as_u16(), unknown.code()), (404, -32601));
    assert!(unknown.last()["error"]["message"].as_str().unwrap().ends_with("did you mean `tools/call`?"));
    let client = client.initialize("2025-11-25", json!({})).await;
    let unknown = client.request_legacy(1, "tools/cal", json!({})).await;
    assert_eq!((unknown.status.as_u16(), unknown.code()), (200, -32601));
    for params in [json!([1]), json!({"name": 5}), json!({"name": "echo", "arguments": [1]}), json!({})] {
        assert_eq!(client.request_legacy(2, "tools/call", params).await.code(), -32602);
    }
    // Methods of absent content do not exist.
    assert_eq!(client.request_legacy(3, "skills/list", json!({})).await.code(), -32601);
    server.close().await;
}

#[tokio::test]
async fn modern_headers_must_match_the_request() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {}, "_meta": meta}});
    let send = |headers: Vec<(&'static str, &'static str)>| {
        let mut request = client.post().json(&body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        async { crate::client::read(request.send().await.unwrap()).await }
    };
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let method = ("Mcp-Method", "tools/call");
    assert_eq!(send(vec![version, method, ("Mcp-Name", "echo")]).await.text(), "{}");
    assert_eq!(send(vec![version, method, ("Mcp-Name", "=?base64?ZWNobw==?=")]).await.text(), "{}");
    for wrong in [
        vec![],
        vec![version],
        vec![version, method],
        vec![version, method, ("Mcp-Name", "other")],
        vec![version, ("Mcp-Method", "tools/list"), ("Mcp-Name", "echo")],
        vec![version, method, method, ("Mcp-Name", "echo")],
        vec![("MCP-Protocol-Version", "2025-11-25"), method, ("Mcp-Name", "echo")],
    ] {
        let answer = send(wrong).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32020));
    }
    assert_eq!(server.tools.calls.lock().len(), 2);
    server.close().await;
}

#[tokio::test]
async fn batches_work_in_their_revision_only() {
    let server = TestServer::new().await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}},
    ]);
    let old = Client::new(&server.address).initialize("2025-03-26", json!({})).await;
    let answer: serde_json::Value = old.post().json(&batch).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer.as_array().unwrap().len(), 2);
    assert_eq!(answer[1]["result"]["content"][0]["text"], "{}");
    let new = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    assert_eq!(new.post().json(&batch).send().await.unwrap().status(), 400);
    server.close().await;
}
