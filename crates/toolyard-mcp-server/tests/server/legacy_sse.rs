//! The HTTP+SSE transport of 2024-11-05.

use serde_json::json;

use crate::{
    client::{Client, next, stream},
    test_server::{ServerBuilder, TestServer},
};

#[tokio::test]
async fn legacy_sse_is_disabled_by_default() {
    let server = TestServer::new().await;
    let url = format!("http://{}/sse", server.address);
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 404);
    server.close().await;
}

#[tokio::test]
async fn responses_arrive_on_the_stream() {
    let mut builder = ServerBuilder::default();
    builder.http.legacy_sse = true;
    let server = builder.build().await;
    let base = format!("http://{}", server.address);
    let mut response = reqwest::get(format!("{base}/sse")).await.unwrap();
    let first = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
    assert!(endpoint.starts_with("/messages?sessionId="));
    let mut events = stream(response);
    let http = reqwest::Client::new();
    let post = |body: serde_json::Value| http.post(format!("{base}{endpoint}")).json(&body).send();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}});
    assert_eq!(post(initialize).await.unwrap().status(), 202);
    assert_eq!(next(&mut events).await["result"]["protocolVersion"], "2024-11-05");
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
        {"name": "progress", "_meta": {"progressToken": 5}}});
    assert_eq!(post(call).await.unwrap().status(), 202);
    assert_eq!(next(&mut events).await["params"]["progressToken"], 5);
    assert_eq!(next(&mut events).await["params"]["progress"], 2.0);
    assert_eq!(next(&mut events).await["result"]["content"][0]["text"], "done");
    let foreign = http.post(format!("{base}/messages?sessionId=0")).json(&json!({})).send().await.unwrap();
    assert_eq!(foreign.status(), 404);
    drop(events);
    Client::new(&server.address).call(1, "echo", json!({})).await.text();
    server.close().await;
}
