//! Several servers as one cluster: what a client sends to one server reaches the server with its call.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cancellation::wait_until,
    client::{Client, TestResponse, assert_silent, next, stream},
    memory_cluster::MemoryCluster,
    test_server::{ServerBuilder, TestServer},
};

/// Numbers of 64 bits, as a cluster may give them to its processes.
pub(crate) const FIRST: u64 = u64::MAX;
const SECOND: u64 = 0xfeed_0000_0000_0001;
const THIRD: u64 = 3;

pub(crate) async fn start_two() -> (Arc<MemoryCluster>, TestServer, TestServer) {
    let cluster = Arc::<MemoryCluster>::default();
    let first = cluster.start(FIRST, ServerBuilder::default()).await;
    let second = cluster.start(SECOND, ServerBuilder::default()).await;
    (cluster, first, second)
}

pub(crate) async fn close(servers: impl IntoIterator<Item = TestServer>) {
    for server in servers {
        server.close().await;
    }
}

pub(crate) fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

pub(crate) fn accept(value: &str) -> Value {
    json!({"action": "accept", "content": {"value": value}})
}

/// A legacy client that initialized at this server.
pub(crate) async fn legacy_client(server: &TestServer) -> Client {
    Client::new(&server.address).initialize("2025-11-25", forms()).await
}

pub(crate) fn request_state(response: &TestResponse) -> Value {
    assert_eq!(response.result()["resultType"], "input_required", "{response:?}");
    response.result()["requestState"].clone()
}

fn repeated_call(tool: &str, arguments: &Value, state: &Value, responses: &Value) -> Value {
    json!({"name": tool, "arguments": arguments, "requestState": state, "inputResponses": responses})
}

pub(crate) async fn repeat(client: &Client, tool: &str, state: &Value, responses: Value) -> TestResponse {
    let params = repeated_call(tool, &json!({}), state, &responses);
    client.request_modern(2, "tools/call", params, forms()).await
}

#[tokio::test]
async fn a_legacy_client_answers_questions_at_another_server() {
    let (_, first, second) = start_two().await;
    let client = legacy_client(&first).await;
    let elsewhere = client.at_address(&second.address);
    let mut messages = stream(client.send_legacy(5, "tools/call", json!({"name": "ask_both"})).await);
    let (name, place) = (next(&mut messages).await, next(&mut messages).await);
    assert!(name["id"].is_string() && name["id"] != place["id"], "{name}");
    assert_eq!(elsewhere.reply(&place["id"], accept("Rome")).await, 202);
    assert_eq!(client.reply(&name["id"], accept("Ann")).await, 202);
    assert_eq!(next(&mut messages).await["result"]["content"][0]["text"], "Ann Rome");
    // Each question is answered once, wherever the second answer arrives.
    assert_eq!(elsewhere.reply(&place["id"], accept("Paris")).await, 400);
    assert_eq!(client.reply(&name["id"], accept("Eve")).await, 400);
    // An error is an answer, too.
    let mut messages = stream(client.send_legacy(6, "tools/call", json!({"name": "ask"})).await);
    let id = next(&mut messages).await["id"].clone();
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "not now"}});
    assert_eq!(elsewhere.post().json(&error).send().await.unwrap().status(), 202);
    assert_eq!(next(&mut messages).await["result"]["content"][0]["text"], "not now");
    close([first, second]).await;
}

#[tokio::test]
async fn a_hundred_questions_are_answered_at_alternating_servers() {
    let cluster = Arc::<MemoryCluster>::default();
    let mut servers = Vec::new();
    for number in [FIRST, SECOND, THIRD] {
        servers.push(cluster.start(number, ServerBuilder::default()).await);
    }
    let expected: Vec<String> = (0..100).map(|round| format!("v{round}")).collect();
    let arguments = json!({"rounds": 100});
    let at = |client: &Client, round: usize| client.at_address(&servers[round % 3].address);

    let client = legacy_client(&servers[0]).await;
    let params = json!({"name": "ask_rounds", "arguments": arguments, "_meta": {"progressToken": "t"}});
    let mut messages = stream(client.send_legacy(1, "tools/call", params).await);
    for (round, value) in expected.iter().enumerate() {
        let id = next(&mut messages).await["id"].clone();
        assert_eq!(at(&client, round).reply(&id, accept(value)).await, 202, "{round}");
        assert_eq!(next(&mut messages).await["method"], "notifications/message");
        assert_eq!(next(&mut messages).await["params"]["progress"], json!(round as f64));
    }
    assert_eq!(next(&mut messages).await["result"]["content"][0]["text"], expected.join(" "));

    let client = Client::new(&servers[0].address);
    let params = json!({"name": "ask_rounds", "arguments": arguments});
    let mut response = client.request_modern(0, "tools/call", params, forms()).await;
    for (round, value) in expected.iter().enumerate() {
        let responses = json!({"name": accept(value)});
        let mut params = repeated_call("ask_rounds", &arguments, &request_state(&response), &responses);
        // The token of each request counts, not that of the first one.
        params["_meta"] = json!({"progressToken": round, "io.modelcontextprotocol/logLevel": "info"});
        response = at(&client, round).request_modern(7, "tools/call", params, forms()).await;
        assert_eq!(response.content_type, "text/event-stream");
        let methods: Vec<&str> =
            response.messages.iter().filter_map(|sent| sent["method"].as_str()).collect();
        assert_eq!(methods, ["notifications/message", "notifications/progress"]);
        assert_eq!(response.messages[1]["params"]["progressToken"], json!(round));
        assert_eq!(response.messages[1]["params"]["message"], "a\nb");
        assert_eq!(response.last()["id"], json!(7));
    }
    assert_eq!(response.text(), expected.join(" "));
    assert_eq!(servers[0].tools.calls.lock().len(), 2);
    assert!(servers[1..].iter().all(|server| server.tools.calls.lock().is_empty()));
    close(servers).await;
}

#[tokio::test]
async fn a_modern_client_continues_a_call_at_another_server() {
    let (_, first, second) = start_two().await;
    let client = Client::new(&first.address);
    let elsewhere = Client::new(&second.address);
    let asked = client.call(1, "ask_both", forms()).await;
    // Several questions in one round; a missing response is requested again.
    let partial =
        repeat(&elsewhere, "ask_both", &request_state(&asked), json!({"name": accept("Ann"), "place": 7}))
            .await;
    let remaining: Vec<_> = partial.result()["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(remaining, ["place"]);
    let done =
        repeat(&elsewhere, "ask_both", &request_state(&partial), json!({"place": accept("Rome")})).await;
    assert_eq!((done.text(), done.content_type.as_str()), ("Ann Rome", "application/json"));
    assert_eq!((&done.last()["id"], &done.result()["resultType"]), (&json!(2), &json!("complete")));
    // A state is valid once, wherever it is used.
    for client in [&client, &elsewhere] {
        let again =
            repeat(client, "ask_both", &request_state(&partial), json!({"place": accept("Rome")})).await;
        assert_eq!(again.code(), -32602);
        assert!(again.last()["error"]["message"].as_str().unwrap().contains("expired"), "{again:?}");
    }
    assert!(second.tools.calls.lock().is_empty());
    close([first, second]).await;
}

#[tokio::test]
async fn of_two_answers_at_two_servers_one_continues_the_call() {
    let (_, first, second) = start_two().await;
    let (client, elsewhere) = (Client::new(&first.address), Client::new(&second.address));
    for _ in 0..20 {
        let state = request_state(&client.call(1, "ask", forms()).await);
        let (here, there) = tokio::join!(
            repeat(&client, "ask", &state, json!({"name": accept("Ann")})),
            repeat(&elsewhere, "ask", &state, json!({"name": accept("Ann")})),
        );
        let continued = [&here, &there].into_iter().filter(|response| response.last()["result"].is_object());
        assert_eq!(continued.count(), 1, "{here:?} {there:?}");
    }
    assert_eq!(first.tools.calls.lock().len(), 20);
    close([first, second]).await;
}

#[tokio::test]
async fn a_tool_error_after_the_answer_is_the_same_at_every_server() {
    let (_, first, second) = start_two().await;
    let mut results = Vec::new();
    for server in [&first, &second] {
        let asked = Client::new(&first.address).call(1, "ask_then_fail", forms()).await;
        let failed = repeat(
            &Client::new(&server.address),
            "ask_then_fail",
            &request_state(&asked),
            json!({"name": accept("Ann")}),
        )
        .await;
        assert_eq!(failed.result()["isError"], json!(true));
        results.push(failed.last().clone());
    }
    assert_eq!(results[0], results[1]);
    close([first, second]).await;
}

#[tokio::test]
async fn nobody_answers_for_another_client_through_another_server() {
    let cluster = Arc::<MemoryCluster>::default();
    let first = cluster.start(FIRST, ServerBuilder::default()).await;
    let second = cluster.start(SECOND, ServerBuilder::default()).await;
    // The same cluster and keys, but callers with a token.
    let other_owner = cluster.start(THIRD, ServerBuilder::default().with_token("one")).await;
    let client = legacy_client(&first).await;
    let mut messages = stream(client.send_legacy(1, "tools/call", json!({"name": "ask"})).await);
    let id = next(&mut messages).await["id"].clone();
    let other_session = legacy_client(&second).await;
    assert_eq!(other_session.reply(&id, accept("Eve")).await, 400);
    assert_eq!(Client::new(&second.address).reply(&id, accept("Eve")).await, 400);
    let with_token = Client::new(&other_owner.address).with_token("one");
    let with_token = with_token.initialize("2025-11-25", forms()).await;
    assert_eq!(with_token.reply(&id, accept("Eve")).await, 400);
    // The session of another caller does not open.
    assert_eq!(with_token.with_session(&client.session()).reply(&id, accept("Eve")).await, 404);
    let text = id.as_str().unwrap();
    for guess in [
        format!("{text}0"),
        format!("0{text}"),
        text.to_uppercase() + "-",
        "1-1".to_owned(),
        "x".repeat(2_000),
    ] {
        assert_eq!(
            client.at_address(&second.address).reply(&json!(guess), accept("Eve")).await,
            400,
            "{guess}"
        );
    }
    assert_silent(&mut messages).await;

    let modern = Client::new(&first.address);
    let state = request_state(&modern.call(1, "ask", forms()).await);
    let responses = json!({"name": accept("Eve")});
    let stranger = Client::new(&other_owner.address).with_token("one");
    let elsewhere = Client::new(&second.address);
    for refused in [
        repeat(&stranger, "ask", &state, responses.clone()).await,
        repeat(&elsewhere, "ask_both", &state, responses.clone()).await,
        repeat(&elsewhere.clone().at_profile("other"), "ask", &state, responses.clone()).await,
    ] {
        assert_eq!(refused.code(), -32602);
    }
    // The owners of both questions still can answer.
    assert_eq!(client.at_address(&second.address).reply(&id, accept("Ann")).await, 202);
    assert_eq!(next(&mut messages).await["result"]["content"][0]["text"], "Ann");
    assert_eq!(repeat(&elsewhere, "ask", &state, json!({"name": accept("Ann")})).await.text(), "Ann");
    close([first, second, other_owner]).await;
}

#[tokio::test]
async fn answers_for_a_server_that_is_gone_are_refused() {
    let (cluster, first, second) = start_two().await;
    let client = legacy_client(&first).await;
    let mut messages = stream(client.send_legacy(1, "tools/call", json!({"name": "ask"})).await);
    let id = next(&mut messages).await["id"].clone();
    let state = request_state(&Client::new(&first.address).call(1, "ask", forms()).await);
    cluster.kill(FIRST);
    assert_eq!(client.at_address(&second.address).reply(&id, accept("Ann")).await, 400);
    let elsewhere = Client::new(&second.address);
    let refused = repeat(&elsewhere, "ask", &state, json!({"name": accept("Ann")})).await;
    assert_eq!((refused.code(), refused.status.as_u16()), (-32602, 200));
    let message = refused.last()["error"]["message"].as_str().unwrap();
    assert!(message.contains("process that asked for input is gone"), "{message}");
    assert!(message.contains("outcome of the call is unknown"), "{message}");
    assert!(second.tools.calls.lock().is_empty(), "the call must not be repeated");
    drop(messages);
    close([first, second]).await;
}

#[tokio::test]
async fn a_server_that_is_lost_while_it_continues_a_call_ends_the_call() {
    let (cluster, first, second) = start_two().await;
    let state = request_state(&Client::new(&first.address).call(1, "ask_then_slow", forms()).await);
    let elsewhere = Client::new(&second.address);
    let calling = tokio::spawn(async move {
        repeat(&elsewhere, "ask_then_slow", &state, json!({"name": accept("Ann")})).await
    });
    first.tools.wait_for_started(1).await;
    cluster.kill(FIRST);
    let lost = calling.await.unwrap();
    assert_eq!(lost.code(), -32602);
    assert!(lost.last()["error"]["message"].as_str().unwrap().contains("is gone"), "{lost:?}");
    assert!(second.tools.calls.lock().is_empty(), "the call must not be repeated");
    close([first, second]).await;
}

#[tokio::test]
async fn a_disconnect_from_another_server_cancels_a_modern_call() {
    let (_, first, second) = start_two().await;
    let state = request_state(&Client::new(&first.address).call(1, "ask_then_slow", forms()).await);
    let elsewhere = Client::new(&second.address);
    let calling = tokio::spawn(async move {
        repeat(&elsewhere, "ask_then_slow", &state, json!({"name": accept("Ann")})).await
    });
    first.tools.wait_for_started(1).await;
    calling.abort();
    wait_until(|| first.tools.dropped.load(Ordering::SeqCst) == 1).await;
    assert_eq!(first.tools.finished.load(Ordering::SeqCst), 0);
    close([first, second]).await;
}

#[tokio::test]
async fn a_server_that_shuts_down_completes_calls_of_clients_elsewhere() {
    let (_, first, second) = start_two().await;
    let state = request_state(&Client::new(&first.address).call(1, "ask_then_slow", forms()).await);
    let elsewhere = Client::new(&second.address);
    let calling = tokio::spawn(async move {
        repeat(&elsewhere, "ask_then_slow", &state, json!({"name": accept("Ann")})).await
    });
    first.tools.wait_for_started(1).await;
    let tools = Arc::clone(&first.tools);
    let closing = tokio::spawn(first.close());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!closing.is_finished(), "the server must wait for the call");
    tools.release.notify_one();
    assert_eq!(calling.await.unwrap().text(), "done");
    closing.await.unwrap();
    second.close().await;
}

#[tokio::test]
async fn a_cancellation_at_another_server_cancels_only_the_own_call() {
    let (_, first, second) = start_two().await;
    let client = legacy_client(&first).await;
    let (caller, elsewhere) = (client.clone(), client.at_address(&second.address));
    let calling =
        tokio::spawn(async move { caller.request_legacy(9, "tools/call", json!({"name": "slow"})).await });
    first.tools.wait_for_started(1).await;
    let other = legacy_client(&second).await;
    assert_eq!(other.notify("notifications/cancelled", json!({"requestId": 9})).await, 202);
    for id in [json!("9"), json!(8), json!({"a": 9}), json!(null), json!("x".repeat(5_000))] {
        assert_eq!(elsewhere.notify("notifications/cancelled", json!({"requestId": id})).await, 202);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(first.tools.dropped.load(Ordering::SeqCst), 0);
    assert_eq!(elsewhere.notify("notifications/cancelled", json!({"requestId": 9})).await, 202);
    wait_until(|| first.tools.dropped.load(Ordering::SeqCst) == 1).await;
    assert!(calling.await.unwrap().messages.is_empty());
    close([first, second]).await;
}

#[tokio::test]
async fn a_session_that_was_ended_at_one_server_is_unknown_to_all() {
    let (_, first, second) = start_two().await;
    let client = legacy_client(&first).await;
    let bystander = legacy_client(&first).await;
    let mut messages = stream(client.send_legacy(1, "tools/call", json!({"name": "ask"})).await);
    let id = next(&mut messages).await["id"].clone();
    let mut changes =
        stream(client.request(Method::GET).header("Accept", "text/event-stream").send().await.unwrap());
    let elsewhere = client.at_address(&second.address);
    assert_eq!(elsewhere.request(Method::DELETE).send().await.unwrap().status(), 204);
    for server in [&client, &elsewhere] {
        assert_eq!(server.request_legacy(2, "ping", json!({})).await.status, 404);
        assert_eq!(server.reply(&id, accept("Ann")).await, 404);
    }
    // Its change stream ends.
    let ended =
        tokio::time::timeout(Duration::from_secs(5), futures_util::StreamExt::next(&mut changes)).await;
    assert_eq!(ended.unwrap(), None);
    assert_eq!(bystander.request_legacy(2, "ping", json!({})).await.status, 200);
    drop(messages);
    close([first, second]).await;
}

#[tokio::test]
async fn calls_without_questions_for_others_send_nothing_to_peers() {
    let (cluster, first, second) = start_two().await;
    let client = legacy_client(&first).await;
    client.request_legacy(1, "tools/call", json!({"name": "echo"})).await.text();
    let mut messages = stream(client.send_legacy(2, "tools/call", json!({"name": "ask"})).await);
    let id = next(&mut messages).await["id"].clone();
    assert_eq!(client.reply(&id, accept("Ann")).await, 202);
    assert_eq!(next(&mut messages).await["result"]["content"][0]["text"], "Ann");
    let modern = Client::new(&first.address);
    let asked = modern.call(1, "ask", forms()).await;
    assert_eq!(
        repeat(&modern, "ask", &request_state(&asked), json!({"name": accept("Ann")})).await.text(),
        "Ann"
    );
    assert!(cluster.sent.lock().is_empty());
    close([first, second]).await;
}

#[tokio::test]
async fn servers_without_peers_refuse_answers_for_each_other() {
    let (first, second) = (TestServer::new().await, TestServer::new().await);
    let client = legacy_client(&first).await;
    let elsewhere = client.at_address(&second.address);
    let mut messages = stream(client.send_legacy(1, "tools/call", json!({"name": "ask"})).await);
    let id = next(&mut messages).await["id"].clone();
    assert!(id.is_u64());
    assert_eq!(elsewhere.reply(&id, accept("Ann")).await, 400);
    assert_eq!(client.reply(&json!(id.to_string()), accept("Ann")).await, 400);
    let asked = Client::new(&first.address).call(1, "ask", forms()).await;
    let refused =
        repeat(&Client::new(&second.address), "ask", &request_state(&asked), json!({"name": accept("Ann")}))
            .await;
    assert_eq!(refused.code(), -32602);
    assert!(
        refused.last()["error"]["message"].as_str().unwrap().starts_with("invalid requestState: issued for")
    );
    assert_eq!(elsewhere.request(Method::DELETE).send().await.unwrap().status(), 204);
    assert_eq!(client.reply(&id, accept("Ann")).await, 202);
    assert_eq!(next(&mut messages).await["result"]["content"][0]["text"], "Ann");
    close([first, second]).await;
}
