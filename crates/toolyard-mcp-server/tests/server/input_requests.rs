//! Input requests in legacy revisions: requests on the stream of the call, responses by other messages.

use serde_json::json;

use crate::{
    client::{Client, next, stream},
    test_server::TestServer,
};

fn accept(value: &str) -> serde_json::Value {
    json!({"action": "accept", "content": {"value": value}})
}

#[tokio::test]
async fn an_input_request_is_streamed_and_answered_by_another_post() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-06-18", json!({"elicitation": {}})).await;
    let mut messages = stream(client.send_legacy(5, "tools/call", json!({"name": "ask_both"})).await);
    let (name, place) = (next(&mut messages).await, next(&mut messages).await);
    assert_eq!(name["method"], "elicitation/create");
    assert_eq!(name["params"]["message"], "What is your name?");
    assert_eq!(name["params"]["_meta"], json!({"toolyard/key": "name"}));
    assert_eq!(client.reply(&place["id"], accept("Rome")).await, 202);
    assert_eq!(client.reply(&name["id"], accept("Ann")).await, 202);
    let answer = next(&mut messages).await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(5), &json!("Ann Rome")));
    server.close().await;
}

#[tokio::test]
async fn a_client_cannot_respond_for_another() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-06-18", json!({"elicitation": {}})).await;
    let other = Client::new(&server.address).initialize("2025-06-18", json!({"elicitation": {}})).await;
    let mut messages = stream(client.send_legacy(1, "tools/call", json!({"name": "ask"})).await);
    let input_request = next(&mut messages).await;
    assert_eq!(other.reply(&input_request["id"], accept("Eve")).await, 400);
    assert_eq!(Client::new(&server.address).reply(&input_request["id"], accept("Eve")).await, 400);
    client.reply(&json!(input_request["id"].as_u64().unwrap() + 1), accept("Eve")).await;
    client.reply(&input_request["id"], accept("Ann")).await;
    assert_eq!(next(&mut messages).await["result"]["content"][0]["text"], "Ann");
    server.close().await;
}

#[tokio::test]
async fn no_input_is_requested_without_a_capability() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-06-18", json!({"sampling": {}})).await;
    let answer = client.request_legacy(1, "tools/call", json!({"name": "ask"})).await;
    assert_eq!(
        (answer.content_type.as_str(), &answer.result()["isError"]),
        ("application/json", &json!(true))
    );
    let refused = client.request_legacy(2, "tools/call", json!({"name": "ask"}));
    assert!(refused.await.text().contains("elicitation"));
    server.close().await;
}

#[tokio::test]
async fn an_error_response_reaches_the_tool() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-06-18", json!({"elicitation": {}})).await;
    let mut messages = stream(client.send_legacy(1, "tools/call", json!({"name": "ask"})).await);
    let input_request = next(&mut messages).await;
    let body =
        json!({"jsonrpc": "2.0", "id": input_request["id"], "error": {"code": -1, "message": "not now"}});
    client.post().json(&body).send().await.unwrap();
    let answer = next(&mut messages).await;
    assert_eq!(answer["result"]["content"][0]["text"], "not now");
    server.close().await;
}
