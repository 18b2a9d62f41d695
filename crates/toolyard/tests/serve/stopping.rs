//! Ending and beginning again: nothing that is under way is lost, and nobody has to begin anew.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    client::{Serving, heard, modern},
    place::wait_until,
    yard,
};

#[tokio::test]
async fn a_call_that_is_under_way_ends_before_the_hub_does() {
    let place = yard();
    let mut hub = Serving::start(&place, &[]);
    let call = hub.request(
        "",
        "tools/call",
        &modern(json!({"name": "wait", "arguments": {"seconds": 2, "name": "Ada"}})),
    );
    let answer = tokio::spawn(heard(call));
    let began = tokio::task::spawn_blocking({
        let called = place.path("fake.json.called");
        move || wait_until(10_000, || called.exists())
    });
    assert!(began.await.unwrap(), "{}", hub.said());
    hub.terminate();
    let answer = answer.await.unwrap();
    assert_eq!(answer.body["result"]["content"][0]["text"], "Hello, Ada!", "{answer:?}");
    assert!(tokio::task::spawn_blocking(move || hub.wait()).await.unwrap());
    place.assert_gone("fake");
}

#[tokio::test]
async fn a_second_word_ends_the_hub_though_a_call_is_under_way() {
    let place = yard();
    let hub = Serving::start(&place, &[]);
    let call = hub.request(
        "",
        "tools/call",
        &modern(json!({"name": "wait", "arguments": {"seconds": 25, "name": "Ada"}})),
    );
    let answer = tokio::spawn(call.send());
    let began = tokio::task::spawn_blocking({
        let called = place.path("fake.json.called");
        move || wait_until(10_000, || called.exists())
    });
    assert!(began.await.unwrap(), "{}", hub.said());
    hub.terminate();
    let hub = tokio::task::spawn_blocking(move || {
        assert!(wait_until(10_000, || hub.said().contains("again to stop at once")));
        hub
    });
    let mut hub = hub.await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    hub.terminate();
    assert!(tokio::task::spawn_blocking(move || hub.wait()).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    answer.abort();
    place.assert_gone("fake");
}

#[tokio::test]
async fn an_idle_hub_ends_at_once() {
    let place = yard();
    let mut hub = Serving::start(&place, &[]);
    hub.ask("", "tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}})).await;
    let began = Instant::now();
    hub.terminate();
    assert!(tokio::task::spawn_blocking(move || hub.wait()).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    place.assert_gone("fake");
}

#[tokio::test]
async fn an_old_session_survives_a_restart() {
    let place = yard();
    let hub = Serving::start(&place, &[]);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let session = heard(hub.request("", "initialize", &hello)).await.session.unwrap();
    let address = format!("127.0.0.1:{}", hub.port());
    drop(hub);
    let hub = Serving::at(&place, &address, &[]);
    let call = json!({"name": "calculate", "arguments": {"expression": "6*7"}});
    let request = hub.request("", "tools/call", &call).header("Mcp-Session-Id", &session);
    let answer = heard(request.header("MCP-Protocol-Version", "2025-06-18")).await;
    assert_eq!(answer.body["result"]["content"][0]["text"], "42", "{answer:?}");
    let foreign = hub.request("", "tools/call", &call).header("Mcp-Session-Id", "x".repeat(session.len()));
    assert_eq!(heard(foreign.header("MCP-Protocol-Version", "2025-06-18")).await.status, 404);
}
