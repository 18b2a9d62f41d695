//! Stopping and restarting: nothing that is under way is lost, and nobody has to begin anew.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    client::{HttpGateway, modern, send},
    fixture,
    test_home::wait_until,
};

#[tokio::test]
async fn a_stopping_hub_waits_for_in_flight_calls() {
    let home = fixture();
    let mut hub = HttpGateway::start(&home, &[]);
    let call = hub.request(
        "",
        "tools/call",
        &modern(json!({"name": "wait", "arguments": {"seconds": 2, "name": "Ada"}})),
    );
    let answer = tokio::spawn(send(call));
    let began = tokio::task::spawn_blocking({
        let called = home.path("fake.json.called");
        move || wait_until(10_000, || called.exists())
    });
    assert!(began.await.unwrap(), "{}", hub.stderr());
    hub.terminate();
    let answer = answer.await.unwrap();
    assert_eq!(answer.body["result"]["content"][0]["text"], "Hello, Ada!", "{answer:?}");
    assert!(tokio::task::spawn_blocking(move || hub.wait()).await.unwrap());
    home.assert_gone("fake");
}

#[tokio::test]
async fn a_second_signal_stops_the_hub_at_once() {
    let home = fixture();
    let hub = HttpGateway::start(&home, &[]);
    let call = hub.request(
        "",
        "tools/call",
        &modern(json!({"name": "wait", "arguments": {"seconds": 25, "name": "Ada"}})),
    );
    let answer = tokio::spawn(call.send());
    let began = tokio::task::spawn_blocking({
        let called = home.path("fake.json.called");
        move || wait_until(10_000, || called.exists())
    });
    assert!(began.await.unwrap(), "{}", hub.stderr());
    hub.terminate();
    let hub = tokio::task::spawn_blocking(move || {
        assert!(wait_until(10_000, || hub.stderr().contains("interrupt again to stop at once")));
        hub
    });
    let mut hub = hub.await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    hub.terminate();
    assert!(tokio::task::spawn_blocking(move || hub.wait()).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    answer.abort();
    home.assert_gone("fake");
}

#[tokio::test]
async fn an_idle_hub_stops_at_once() {
    let home = fixture();
    let mut hub = HttpGateway::start(&home, &[]);
    hub.ask("", "tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}})).await;
    let began = Instant::now();
    hub.terminate();
    assert!(tokio::task::spawn_blocking(move || hub.wait()).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    home.assert_gone("fake");
}

#[tokio::test]
async fn a_legacy_session_survives_a_restart() {
    let home = fixture();
    let hub = HttpGateway::start(&home, &[]);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let session = send(hub.request("", "initialize", &hello)).await.session.unwrap();
    let address = format!("127.0.0.1:{}", hub.port());
    drop(hub);
    let hub = HttpGateway::at(&home, &address, &[]);
    let call = json!({"name": "calculate", "arguments": {"expression": "6*7"}});
    let request = hub.request("", "tools/call", &call).header("Mcp-Session-Id", &session);
    let answer = send(request.header("MCP-Protocol-Version", "2025-06-18")).await;
    assert_eq!(answer.body["result"]["content"][0]["text"], "42", "{answer:?}");
    let foreign = hub.request("", "tools/call", &call).header("Mcp-Session-Id", "x".repeat(session.len()));
    assert_eq!(send(foreign.header("MCP-Protocol-Version", "2025-06-18")).await.status, 404);
}
