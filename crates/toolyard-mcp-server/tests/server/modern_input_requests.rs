//! Input requests in modern revisions: results that request input, and retries that provide it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    client::{Client, TestResponse},
    test_server::{ServerBuilder, TestServer},
};

fn form_capability() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn accept(value: &str) -> Value {
    json!({"action": "accept", "content": {"value": value}})
}

/// Retries a call with responses.
async fn retry(client: &Client, tool: &str, state: &Value, responses: Value) -> TestResponse {
    let params = json!({"name": tool, "arguments": {}, "requestState": state, "inputResponses": responses});
    client.request_modern(2, "tools/call", params, form_capability()).await
}

fn request_state(answer: &TestResponse) -> Value {
    assert_eq!(answer.result()["resultType"], "input_required", "{answer:?}");
    answer.result()["requestState"].clone()
}

#[tokio::test]
async fn a_suspended_call_resumes_with_its_responses() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let first = client.call(1, "ask_twice", form_capability()).await;
    let input_request = &first.result()["inputRequests"]["first"];
    assert_eq!(
        (input_request["method"].as_str(), first.content_type.as_str()),
        (Some("elicitation/create"), "application/json")
    );
    let second = retry(&client, "ask_twice", &request_state(&first), json!({"first": accept("one")})).await;
    assert_ne!(request_state(&first), request_state(&second));
    assert!(second.result()["inputRequests"].get("first").is_none());
    let done = retry(&client, "ask_twice", &request_state(&second), json!({"second": accept("two")})).await;
    assert_eq!((done.text(), &done.last()["id"]), ("one two", &json!(2)));
    assert_eq!(server.tools.calls.lock().len(), 1);
    server.close().await;
}

#[tokio::test]
async fn missing_and_invalid_responses_are_requested_again() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let first = client.call(1, "ask_both", form_capability()).await;
    assert_eq!(first.result()["inputRequests"].as_object().unwrap().len(), 2);
    let partial = retry(
        &client,
        "ask_both",
        &request_state(&first),
        json!({"name": accept("Ann"), "place": 7, "more": {}}),
    )
    .await;
    let remaining: Vec<_> = partial.result()["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(remaining, ["place"]);
    let none = retry(&client, "ask_both", &request_state(&partial), json!({})).await;
    let done = retry(&client, "ask_both", &request_state(&none), json!({"place": accept("Rome")})).await;
    assert_eq!(done.text(), "Ann Rome");
    server.close().await;
}

#[tokio::test]
async fn concurrent_input_requests_are_batched_under_unique_keys() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let first = client.call(1, "ask_apart", form_capability()).await;
    let keys: Vec<_> = first.result()["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "name_2"]);
    let both = json!({"name_2": accept("two"), "name": accept("one")});
    assert_eq!(retry(&client, "ask_apart", &request_state(&first), both).await.text(), "one two");
    server.close().await;
}

#[tokio::test]
async fn early_responses_are_used() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let params = json!({"name": "ask_twice", "arguments": {},
        "inputResponses": {"first": accept("one"), "second": accept("two"), "third": 3}});
    assert_eq!(client.request_modern(1, "tools/call", params, form_capability()).await.text(), "one two");
    server.close().await;
}

#[tokio::test]
async fn request_state_is_valid_once_for_one_request() {
    let server = ServerBuilder::default().with_token("one").build().await;
    let client = Client::new(&server.address).with_token("one");
    let first = client.call(1, "ask", form_capability()).await;
    let (sealed, answer) = (request_state(&first), json!({"name": accept("Ann")}));
    let mut tampered = sealed.as_str().unwrap().to_owned();
    tampered.push('A');
    let elsewhere = client.clone().at_profile("other");
    for refused in [
        retry(&client, "ask", &json!(tampered), answer.clone()).await,
        retry(&client, "ask", &json!("made up"), answer.clone()).await,
        retry(&client, "ask_both", &sealed, answer.clone()).await,
        retry(&elsewhere, "ask", &sealed, answer.clone()).await,
    ] {
        assert_eq!(refused.code(), -32602);
    }
    assert_eq!(retry(&client, "ask", &sealed, answer.clone()).await.text(), "Ann");
    assert_eq!(retry(&client, "ask", &sealed, answer).await.code(), -32602);
    server.close().await;
}

#[tokio::test]
async fn suspended_calls_are_limited_in_number_and_time() {
    let mut builder = ServerBuilder::default();
    builder.config.limits.suspended_calls = 2;
    builder.config.limits.suspended_call_timeout = Duration::from_millis(200);
    let server = builder.build().await;
    let client = Client::new(&server.address);
    let first = client.call(1, "ask", form_capability()).await;
    request_state(&client.call(2, "ask", form_capability()).await);
    assert_eq!(client.call(3, "ask", form_capability()).await.code(), -32603);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(
        retry(&client, "ask", &request_state(&first), json!({"name": accept("Ann")})).await.code(),
        -32602
    );
    request_state(&client.call(4, "ask", form_capability()).await);
    server.close().await;
}

#[tokio::test]
async fn a_missing_capability_is_named() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    for tool in ["ask", "upstream"] {
        for capabilities in [json!({}), json!({"sampling": {}})] {
            let refused = client.call(1, tool, capabilities).await;
            assert_eq!((refused.status.as_u16(), refused.code()), (400, -32021), "{tool}");
            assert_eq!(refused.last()["error"]["data"], json!({"requiredCapabilities": {"elicitation": {}}}));
        }
    }
    server.close().await;
}

#[tokio::test]
async fn input_requests_of_stateless_servers_are_forwarded() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let first = client.call(1, "upstream", form_capability()).await;
    let sealed = request_state(&first);
    assert_eq!(first.result()["x-kept"].to_string(), "1.0");
    assert!(!sealed.as_str().unwrap().contains("theirs"));
    let done = retry(&client, "upstream", &sealed, json!({"name": accept("Ann")})).await;
    let echoed: Value = serde_json::from_str(done.text()).unwrap();
    assert_eq!(echoed, json!({"source": "far", "state": "theirs", "responses": {"name": accept("Ann")}}));
    assert_eq!(retry(&client, "echo", &sealed, json!({})).await.code(), -32602);
    // A retry without responses still returns the state.
    let params = json!({"name": "upstream", "arguments": {}, "requestState": sealed});
    assert!(
        client.request_modern(3, "tools/call", params, form_capability()).await.text().contains("theirs")
    );
    // Another process with the same key can continue.
    let replica = TestServer::new().await;
    let elsewhere = Client::new(&replica.address);
    assert!(
        retry(&elsewhere, "upstream", &sealed, json!({"name": accept("Ann")})).await.text().contains("far")
    );
    for server in [server, replica] {
        server.close().await;
    }
}

#[tokio::test]
async fn a_call_that_streams_requests_input_on_its_stream() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let params = json!({"name": "tell_and_ask", "arguments": {}, "_meta": {"progressToken": 1}});
    let first = client.request_modern(1, "tools/call", params, form_capability()).await;
    assert_eq!((first.content_type.as_str(), first.messages.len()), ("text/event-stream", 2));
    assert_eq!(first.messages[0]["method"], "notifications/progress");
    let done = retry(&client, "tell_and_ask", &request_state(&first), json!({"name": accept("Ann")})).await;
    assert_eq!(done.text(), "Ann");
    server.close().await;
}
