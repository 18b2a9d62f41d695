//! The page of the cluster, and the line about it on the page of servers.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fixture::Fixture;

/// Two gateways, of which one is lost, and a group of workers with a changed tool.
fn cluster_api(_: &Method, path: &str) -> (StatusCode, Value) {
    let body = match path.split('?').next().unwrap() {
        "/api/v1/cluster" => json!({
            "nats_connected": true,
            "gateways": [
                {"process": "0a", "name": "node-1:7", "version": "0.1.0", "state": "seen", "is_this": true, "last_seen_at": 1_000},
                {"process": "0b", "name": "node-2:9", "version": "0.1.0", "state": "lost", "is_this": false, "last_seen_at": 1_000}],
            "workers": [{"name": "office", "source": "worker:office", "state": "available", "trusted": false, "tools": 12,
                "awaiting_approval": [{"tool": "greet", "reason": "the definition changed"}],
                "processes": [{"process": "0c", "name": "desk:5", "state": "seen", "last_seen_at": 1_000, "concurrency": 64, "running_calls": 3}]}],
            "sessions": [{"server": "notes", "gateway": "0b", "sessions": 4}],
        }),
        "/api/v1/servers" => json!({"servers": []}),
        _ => return (StatusCode::NOT_FOUND, json!({"error": {"code": "route_not_found"}})),
    };
    (StatusCode::OK, body)
}

#[tokio::test]
async fn the_page_shows_gateways_workers_and_who_owns_sessions() {
    let fixture = Fixture::new(false, cluster_api);
    // Those who sign in with the token see it, too.
    for session in [fixture.operator().await, fixture.caller().await] {
        let page = fixture.get("/console/cluster?lang=en", &session).await;
        assert_eq!(page.status, StatusCode::OK);
        for text in [
            "Connected to NATS",
            "node-1:7",
            "this gateway",
            "<span class=\"state state-down\">Lost</span>",
            "office",
            "/console/tools?source=worker%3Aoffice",
            "Awaiting approval: 1",
            "greet",
            "desk:5",
            "3 / 64",
            "<td>node-2:9</td><td class=\"number\">4</td>",
        ] {
            assert!(page.body.contains(text), "{text}: {}", page.body);
        }
    }
}

#[tokio::test]
async fn the_page_of_servers_leads_to_the_cluster_if_there_is_one() {
    let fixture = Fixture::new(false, cluster_api);
    let page = fixture.get("/console/servers?lang=en", &fixture.operator().await).await.body;
    assert!(
        page.contains("href=\"/console/cluster\"") && page.contains("Gateways: 1 · Worker processes: 1"),
        "{page}"
    );
    let alone: fn(&Method, &str) -> (StatusCode, Value) = |method, path| match path {
        path if path.starts_with("/api/v1/cluster") => {
            (StatusCode::NOT_FOUND, json!({"error": {"code": "not_offered"}}))
        }
        path => cluster_api(method, path),
    };
    let fixture = Fixture::new(false, alone);
    let page = fixture.get("/console/servers", &fixture.operator().await).await.body;
    assert!(!page.contains("/console/cluster"), "{page}");
}
