//! Liveness, readiness and the drain period: load balancers hear of a stopping gateway before it refuses connections.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    client::{HttpGateway, modern_params},
    home_with_server,
    test_home::{TestHome, wait_until},
};

/// Adds lines to the operator's settings.
fn add_settings(home: &TestHome, lines: &str) {
    let file = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    home.write("config/toolyard/toolyard.toml", &format!("{text}\n{lines}\n"));
}

#[tokio::test]
async fn a_draining_gateway_is_not_ready_and_serves_requests_until_the_period_ends() {
    let home = home_with_server();
    add_settings(&home, "[serve]\ndrain = \"3s\"");
    let mut gateway = HttpGateway::start(&home, &[]);
    assert_eq!(gateway.get("/readyz", None).await.0, 200);
    let stopped_at = Instant::now();
    gateway.terminate();
    while gateway.get("/readyz", None).await.0 == 200 {
        assert!(stopped_at.elapsed() < Duration::from_secs(2), "{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (status, body) = gateway.get("/readyz", None).await;
    assert!(status == 503 && body.contains(r#"{"name":"running","ok":false,"reason":"stopping"}"#), "{body}");
    assert_eq!(gateway.get("/healthz", None).await, (200, r#"{"status":"ok"}"#.to_owned()));
    // New connections are accepted, calls are made, and the connections are closed after their response.
    let mut calls = 0;
    while stopped_at.elapsed() < Duration::from_millis(2_500) {
        let call = json!({"name": "greet", "arguments": {"name": "Ada"}});
        let response = reqwest::Client::new()
            .execute(gateway.build_request("", "tools/call", &modern_params(call)).build().unwrap())
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["connection"], "close");
        calls += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(calls > 3, "{calls}");
    assert!(tokio::task::spawn_blocking(move || gateway.wait()).await.unwrap());
    assert!(stopped_at.elapsed() >= Duration::from_secs(3), "{:?}", stopped_at.elapsed());
    home.assert_stopped("fake");
}

#[tokio::test]
async fn a_second_signal_ends_the_drain_period() {
    let home = home_with_server();
    add_settings(&home, "[serve]\ndrain = \"5m\"");
    let gateway = HttpGateway::start(&home, &[]);
    gateway.terminate();
    while gateway.get("/readyz", None).await.0 == 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let gateway = tokio::task::spawn_blocking(move || {
        let is_announced = || gateway.stderr().contains("accepting requests for 300 s");
        assert!(wait_until(10_000, is_announced), "{}", gateway.stderr());
        gateway
    });
    let mut gateway = gateway.await.unwrap();
    let stopped_at = Instant::now();
    gateway.terminate();
    assert!(tokio::task::spawn_blocking(move || gateway.wait()).await.unwrap());
    assert!(stopped_at.elapsed() < Duration::from_secs(8), "{:?}", stopped_at.elapsed());
}

#[tokio::test]
async fn a_gateway_is_not_ready_without_a_required_server_and_says_which_to_clients_with_the_token() {
    let home = home_with_server();
    let program = "[servers.gone]\ncommand = \"false\"\n[serve]\nrequired_servers = [\"fake\", \"gone\"]";
    add_settings(&home, program);
    let gateway = HttpGateway::start(&home, &[]);
    let (status, body) = gateway.get("/readyz", None).await;
    assert_eq!(status, 503, "{body}");
    assert!(body.contains(r#"{"name":"store","ok":true}"#), "{body}");
    assert!(body.contains("a required server is not ready") && !body.contains("gone"), "{body}");
    let (_, body) = gateway.get("/readyz", gateway.token.as_deref()).await;
    assert!(body.contains("gone: ") && !body.contains("fake: "), "{body}");
    assert_eq!(gateway.get("/healthz", None).await.0, 200, "a missing server is no reason for a restart");
    // Without the requirement, a failed server affects its own tools only.
    let settings = std::fs::read_to_string(home.path("config/toolyard/toolyard.toml")).unwrap();
    let settings = settings.replace("[\"fake\", \"gone\"]", "[\"fake\"]");
    home.write("config/toolyard/toolyard.toml", &settings);
    gateway.hang_up("settings reloaded").await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(gateway.get("/readyz", None).await.0, 200);
}

#[test]
fn an_unknown_required_server_is_an_error_with_the_known_ones() {
    let home = home_with_server();
    add_settings(&home, "[serve]\nrequired_servers = [\"fale\"]");
    insta::assert_snapshot!(home.run(&["serve", "--http", "127.0.0.1:0"]), @r"
    --- stderr
    error: [serve] required_servers: server `fale` does not exist
      hint: configured servers: fake
    --- exit 2
    ");
}
