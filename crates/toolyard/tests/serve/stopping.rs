//! Stopping and restarting a gateway: calls in flight are finished, and legacy sessions continue.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    client::{HttpGateway, modern_params, send},
    home_with_server,
    test_home::wait_until,
};

#[tokio::test]
async fn a_stopping_gateway_waits_for_in_flight_calls() {
    let home = home_with_server();
    let mut gateway = HttpGateway::start(&home, &[]);
    let call = gateway.build_request(
        "",
        "tools/call",
        &modern_params(json!({"name": "wait", "arguments": {"seconds": 2, "name": "Ada"}})),
    );
    let answer = tokio::spawn(send(call));
    let call_started = tokio::task::spawn_blocking({
        let called = home.path("fake.json.called");
        move || wait_until(10_000, || called.exists())
    });
    assert!(call_started.await.unwrap(), "{}", gateway.stderr());
    gateway.terminate();
    let answer = answer.await.unwrap();
    assert_eq!(answer.body["result"]["content"][0]["text"], "Hello, Ada!", "{answer:?}");
    assert!(tokio::task::spawn_blocking(move || gateway.wait()).await.unwrap());
    home.assert_stopped("fake");
}

#[tokio::test]
async fn a_second_signal_stops_the_gateway_at_once() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let call = gateway.build_request(
        "",
        "tools/call",
        &modern_params(json!({"name": "wait", "arguments": {"seconds": 25, "name": "Ada"}})),
    );
    let answer = tokio::spawn(call.send());
    let call_started = tokio::task::spawn_blocking({
        let called = home.path("fake.json.called");
        move || wait_until(10_000, || called.exists())
    });
    assert!(call_started.await.unwrap(), "{}", gateway.stderr());
    gateway.terminate();
    let gateway = tokio::task::spawn_blocking(move || {
        assert!(wait_until(10_000, || gateway.stderr().contains("interrupt again to stop at once")));
        gateway
    });
    let mut gateway = gateway.await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let stopped_at = Instant::now();
    gateway.terminate();
    assert!(tokio::task::spawn_blocking(move || gateway.wait()).await.unwrap());
    assert!(stopped_at.elapsed() < Duration::from_secs(8), "{:?}", stopped_at.elapsed());
    answer.abort();
    home.assert_stopped("fake");
}

#[tokio::test]
async fn an_idle_gateway_stops_at_once() {
    let home = home_with_server();
    let mut gateway = HttpGateway::start(&home, &[]);
    gateway.send_request("", "tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}})).await;
    let stopped_at = Instant::now();
    gateway.terminate();
    assert!(tokio::task::spawn_blocking(move || gateway.wait()).await.unwrap());
    assert!(stopped_at.elapsed() < Duration::from_secs(5), "{:?}", stopped_at.elapsed());
    home.assert_stopped("fake");
}

#[tokio::test]
async fn a_legacy_session_survives_a_restart() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let initialize_params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let session = send(gateway.build_request("", "initialize", &initialize_params)).await.session.unwrap();
    let address = format!("127.0.0.1:{}", gateway.port());
    drop(gateway);
    let gateway = HttpGateway::at(&home, &address, &[]);
    let call = json!({"name": "calculate", "arguments": {"expression": "6*7"}});
    let request = gateway.build_request("", "tools/call", &call).header("Mcp-Session-Id", &session);
    let answer = send(request.header("MCP-Protocol-Version", "2025-06-18")).await;
    assert_eq!(answer.body["result"]["content"][0]["text"], "42", "{answer:?}");
    let foreign =
        gateway.build_request("", "tools/call", &call).header("Mcp-Session-Id", "x".repeat(session.len()));
    assert_eq!(send(foreign.header("MCP-Protocol-Version", "2025-06-18")).await.status, 404);
}
