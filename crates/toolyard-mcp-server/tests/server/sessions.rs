//! Legacy sessions: the id is encrypted state that any replica with the key can decrypt; it is valid only for its endpoint and token.

use serde_json::json;

use crate::{
    client::Client,
    test_server::{SESSION_KEY, ServerBuilder, TestServer},
};

async fn ping(client: &Client) -> u16 {
    client.request_legacy(1, "ping", json!({})).await.status.as_u16()
}

#[tokio::test]
async fn a_session_survives_a_restart_and_key_rotation() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-06-18", json!({"elicitation": {}})).await;
    let session = client.session();
    server.close().await;

    let next_key = [8; 32];
    for builder in [ServerBuilder::default(), ServerBuilder::default().with_keys(next_key, Some(SESSION_KEY))]
    {
        let server = builder.build().await;
        let client = Client::new(&server.address).with_session(&session);
        assert_eq!(ping(&client).await, 200);
        // The capabilities of the client are part of the session id.
        let answer = client.send_legacy(2, "tools/call", json!({"name": "ask"})).await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        drop(answer);
        drop(server);
    }
    let server = ServerBuilder::default().with_keys(next_key, None).build().await;
    assert_eq!(ping(&Client::new(&server.address).with_session(&session)).await, 404);
    server.close().await;
}

#[tokio::test]
async fn a_session_is_bound_to_its_endpoint_and_token() {
    let server = ServerBuilder::default().with_token("one").build().await;
    let client = Client::new(&server.address).with_token("one").initialize("2025-11-25", json!({})).await;
    let session = client.session();
    assert_eq!(ping(&client).await, 200);
    let elsewhere = Client::new(&server.address).with_token("one").at_profile("other").with_session(&session);
    assert_eq!(ping(&elsewhere).await, 404);
    let other = ServerBuilder::default().with_token("two").build().await;
    assert_eq!(ping(&Client::new(&other.address).with_token("two").with_session(&session)).await, 404);
    let open = TestServer::new().await;
    assert_eq!(ping(&Client::new(&open.address).with_session(&session)).await, 404);
    for server in [server, other, open] {
        server.close().await;
    }
}

#[tokio::test]
async fn a_forged_session_is_rejected() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let session = client.session();
    let mut changed = session.clone().into_bytes();
    let last = changed.len() - 3;
    changed[last] = if changed[last] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    for forged in [changed.as_str(), "", "abc", &"A".repeat(5_000), session.split_at(1).1, "no session!"] {
        let client = Client::new(&server.address).with_session(forged);
        assert_eq!(ping(&client).await, 404, "{forged}");
        assert_eq!(client.notify("notifications/initialized", json!({})).await, 404);
        assert_eq!(client.request(reqwest::Method::DELETE).send().await.unwrap().status(), 404);
    }
    server.close().await;
}

#[tokio::test]
async fn an_ended_session_is_rejected() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let other = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    assert_eq!(client.request(reqwest::Method::DELETE).send().await.unwrap().status(), 204);
    assert_eq!(ping(&client).await, 404);
    assert_eq!(ping(&other).await, 200);
    // A client may initialize again, even with the id of an ended session.
    assert_eq!(ping(&client.initialize("2025-11-25", json!({})).await).await, 200);
    server.close().await;
}

#[tokio::test]
async fn the_revision_is_negotiated() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    for (requested, negotiated) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": requested, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let answer = client.request_legacy(1, "initialize", params).await;
        assert_eq!(answer.result()["protocolVersion"], negotiated);
    }
    let unknown = client.post().header("MCP-Protocol-Version", "1999-01-01");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(unknown.json(&body).send().await.unwrap().status(), 400);
    // MCP: a request without version header and handshake is served as revision 2025-03-26.
    let without_version = client.post().json(&body).send().await.unwrap();
    assert_eq!(without_version.status(), 200);
    server.close().await;
}
