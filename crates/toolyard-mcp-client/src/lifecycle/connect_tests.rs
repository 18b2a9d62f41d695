//! Servers whose handshake is unusual.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolyard_mcp::{RpcError, error_code::UNSUPPORTED_VERSION};

use super::*;
use crate::transport::http::test_server::{ReceivedRequest, Reply, TestServer};

const TIMEOUT: Duration = Duration::from_secs(5);

fn options(family: Option<RevisionFamily>) -> ConnectOptions {
    ConnectOptions { revision_family: family, startup_timeout: TIMEOUT, ..ConnectOptions::new("odd") }
}

async fn try_connect(server: &TestServer) -> Result<Session, ConnectError> {
    let target = HttpTarget::new(&server.url, []).unwrap();
    connect(ConnectTarget::Http(target, HttpKind::Streamable), &options(None)).await
}

fn methods(server: &TestServer) -> Vec<String> {
    let method = |request: &ReceivedRequest| request.json()["method"].as_str().unwrap_or("GET").to_owned();
    server.received().iter().map(method).collect()
}

fn refusal(request: &ReceivedRequest) -> String {
    let data = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
    let error = json!({"code": UNSUPPORTED_VERSION, "message": "Unsupported protocol version", "data": data});
    json!({"jsonrpc": "2.0", "id": request.id(), "error": error}).to_string()
}

/// A modern server that refuses its own revision in the first requests.
async fn refusing_server(refusals: usize) -> TestServer {
    let request_count = Arc::new(AtomicUsize::new(0));
    TestServer::start(move |request: ReceivedRequest, mut reply: Reply| {
        let count = request_count.fetch_add(1, Ordering::Relaxed);
        async move {
            if count < refusals {
                reply.full(400, &[("Content-Type", "application/json")], refusal(&request)).await;
            } else {
                let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
                reply.json(request.response(&result)).await;
            }
            Some(reply)
        }
    })
    .await
}

#[tokio::test]
async fn a_server_that_refuses_its_own_revision_is_asked_again_and_never_initialized() {
    let server = refusing_server(1).await;
    let session = try_connect(&server).await.unwrap();
    assert_eq!(session.revision_family(), RevisionFamily::Modern);
    assert_eq!(methods(&server), ["server/discover", "server/discover"]);
    let server = refusing_server(usize::MAX).await;
    let error = try_connect(&server).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused(RpcError { code: UNSUPPORTED_VERSION, .. })), "{error}");
    assert_eq!(methods(&server), ["server/discover", "server/discover"]);
}

/// A legacy server that responds to unknown methods with an empty result, and takes a while to open the listen stream.
async fn legacy_server(opening_delay: Duration) -> TestServer {
    TestServer::start(move |request: ReceivedRequest, mut reply: Reply| async move {
        if request.method == "GET" {
            sleep(opening_delay).await;
            reply.events().await;
            reply.raw(": open\n\n").await;
            reply.disconnected().await;
            return None;
        }
        let body = request.json();
        match body["method"].as_str() {
            Some("initialize") => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}});
                reply.json(request.response(&result)).await;
            }
            _ if body["id"] == Value::Null => reply.full(202, &[], "").await,
            _ => reply.json(request.response(&json!({}))).await,
        }
        Some(reply)
    })
    .await
}

#[tokio::test]
async fn an_empty_result_is_not_modern() {
    let server = legacy_server(Duration::ZERO).await;
    let session = try_connect(&server).await.unwrap();
    assert_eq!((session.revision_family(), session.revision()), (RevisionFamily::Legacy, "2025-11-25"));
}

#[tokio::test]
async fn a_session_waits_for_the_listen_stream_up_to_a_timeout() {
    let delay = Duration::from_millis(300);
    for (opening_delay, range) in
        [(delay, delay..LISTEN_STREAM_TIMEOUT), (Duration::from_secs(60), LISTEN_STREAM_TIMEOUT..TIMEOUT)]
    {
        let server = legacy_server(opening_delay).await;
        let started = Instant::now();
        let session = try_connect(&server).await.unwrap();
        assert!(range.contains(&started.elapsed()), "{range:?} {:?}", started.elapsed());
        session.close().await;
    }
}

/// A server that supports only the modern revision.
async fn modern_server() -> TestServer {
    TestServer::start(|request: ReceivedRequest, mut reply: Reply| async move {
        if request.json()["method"] == "server/discover" {
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
            reply.json(request.response(&about)).await;
        } else {
            let data = json!({"supported": ["2026-07-28"]});
            let error = json!({"code": UNSUPPORTED_VERSION, "message": "unsupported version", "data": data});
            let body = json!({"jsonrpc": "2.0", "id": request.id(), "error": error}).to_string();
            reply.full(400, &[("Content-Type", "application/json")], body).await;
        }
        Some(reply)
    })
    .await
}

#[tokio::test]
async fn a_legacy_server_may_be_upgraded_to_a_modern_one() {
    let server = modern_server().await;
    for family in [None, Some(RevisionFamily::Modern), Some(RevisionFamily::Legacy)] {
        let target = HttpTarget::new(&server.url, []).unwrap();
        let session = connect(ConnectTarget::Http(target, HttpKind::Auto), &options(family)).await.unwrap();
        assert_eq!((session.revision_family(), session.revision()), (RevisionFamily::Modern, "2026-07-28"));
        session.close().await;
    }
}
