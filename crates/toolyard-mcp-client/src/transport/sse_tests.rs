//! The HTTP+SSE transport of 2024-11-05: endpoints, responses on the stream, and lost connections.

use std::time::Instant;

use serde_json::json;
use tokio::{
    sync::{broadcast, mpsc},
    time::timeout,
};

use super::*;
use crate::transport::{
    http::{client::http_client, test_server::*},
    requests::pending::ServerMessage,
};
use toolyard_mcp::WireError;

async fn connect(url: &str, startup: Duration) -> Result<TestClient<LegacySse>, TransportError> {
    let limits = WireLimits::default();
    let (requests, messages) = PendingRequests::new(limits.in_flight);
    let requests = Arc::new(requests);
    let target = HttpTarget::new(url, [("X-Key".to_owned(), "value".to_owned())]).unwrap();
    let client = http_client().unwrap();
    let transport = LegacySse::connect(target, Arc::clone(&requests), limits, client, startup).await?;
    Ok(TestClient { transport, requests, messages })
}

async fn connect_error(url: &str) -> TransportError {
    let outcome = timeout(Duration::from_secs(5), connect(url, Duration::from_millis(300))).await;
    outcome.expect("connecting hangs").err().expect("connecting succeeds")
}

/// Names `endpoint` and responds to each POST on the stream, in any order.
async fn echo_server(endpoint: &'static str) -> TestServer {
    let (posted, _) = broadcast::channel::<String>(4_096);
    TestServer::start(move |request, mut reply| {
        let posted = posted.clone();
        async move {
            if request.method == "POST" {
                reply.full(202, &[], "Accepted").await;
                let response = match request.json()["method"].as_str() {
                    Some("stop") => "stop".to_owned(),
                    Some("garbage") => "{ not json".to_owned(),
                    _ if request.json()["id"].is_u64() => request.response(&json!({"echo": request.id()})),
                    _ => return Some(reply),
                };
                posted.send(response).unwrap();
                return Some(reply);
            }
            let mut responses = posted.subscribe();
            reply.events().await;
            reply.raw(format!("event: endpoint\ndata: {endpoint}\n\n: ping\n\n")).await;
            reply.event(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#).await;
            while let Ok(response) = responses.recv().await {
                if response == "stop" {
                    break;
                }
                reply.event(response).await;
            }
            None
        }
    })
    .await
}

#[tokio::test]
async fn messages_are_posted_and_responses_come_on_the_stream() {
    let server = echo_server("/messages?session_id=7").await;
    let mut client = connect(&server.url, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(client.messages.recv().await, Some(ServerMessage::Notification { .. })));
    assert_eq!(client.result("initialize").await, json!({"echo": 1}));
    client.transport.set_protocol_version(Some("2025-06-18"));
    client.transport.send(notification("notifications/initialized")).await.unwrap();
    assert_eq!(client.result("tools/list").await, json!({"echo": 2}));
    let received = server.received();
    assert_eq!(
        (received[0].method.as_str(), received[0].header("accept")),
        ("GET", Some("text/event-stream"))
    );
    assert!(received.iter().all(|request| request.header("x-key") == Some("value")));
    assert_eq!((received[3].method.as_str(), received[3].path.as_str()), ("POST", "/messages?session_id=7"));
    assert_eq!(received[3].header("mcp-protocol-version"), Some("2025-06-18"));
    assert!(!client.transport.cancels_on_drop(), "all requests share the stream");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_get_their_own_responses() {
    let server = echo_server("messages").await;
    let client = Arc::new(connect(&server.url, Duration::from_secs(5)).await.unwrap());
    let mut tasks = Vec::new();
    for _ in 0..300 {
        let client = Arc::clone(&client);
        tasks.push(tokio::spawn(async move {
            let mut pending = client.requests.register().unwrap();
            client.transport.send(request(pending.id, "tools/call")).await.unwrap();
            let response = pending.response().await.unwrap().unwrap();
            assert_eq!(response.get(), json!({"echo": pending.id}).to_string());
        }));
    }
    for task in tasks {
        timeout(Duration::from_secs(30), task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_endpoint_at_another_origin_is_refused() {
    for endpoint in [
        "http://127.0.0.1:1/messages",
        "https://evil.example/m?token=hidden",
        "//evil.example/m",
        "file:///etc/passwd",
    ] {
        let server = echo_server(endpoint).await;
        let error = connect_error(&server.url).await;
        assert!(matches!(&error, TransportError::CrossOriginEndpoint(_)), "{endpoint}: {error:?}");
        assert!(error.had_no_effect() && !error.to_string().contains("hidden"), "{error}");
        assert_eq!(server.received().len(), 1);
    }
}

#[test]
fn an_endpoint_is_a_path_on_the_same_server() {
    let base = Url::parse("http://user:word@h:80/a/sse?key=1").unwrap();
    for (endpoint, url) in [
        ("/m?s=1", "http://user:word@h/m?s=1"),
        (" messages/ ", "http://user:word@h/a/messages/"),
        ("http://h/m", "http://user:word@h/m"),
        ("http://other:one@h:80/m#part", "http://user:word@h/m"),
        ("?s=2", "http://user:word@h/a/sse?s=2"),
    ] {
        assert_eq!(endpoint_url(&base, &base, endpoint).unwrap().as_str(), url, "{endpoint}");
    }
    assert!(endpoint_url(&base, &base, "http://[").is_err());
    assert!(endpoint_url(&base, &base, "http://h:81/m").is_err());
    let redirected = Url::parse("http://h/a/sse/").unwrap();
    assert_eq!(endpoint_url(&base, &redirected, "m").unwrap().path(), "/a/sse/m");
}

#[tokio::test]
async fn the_end_of_the_stream_closes_the_connection() {
    let server = echo_server("/m").await;
    let mut client = connect(&server.url, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(client.error("stop").await, TransportError::ConnectionLost(_)));
    assert!(matches!(client.error("tools/list").await, TransportError::ConnectionLost(_)));
    client.messages.recv().await.unwrap();
    assert!(matches!(
        client.messages.recv().await,
        Some(ServerMessage::Closed(TransportError::ConnectionLost(_)))
    ));
}

#[tokio::test]
async fn invalid_messages_close_the_connection_with_the_reason() {
    let server = echo_server("/m").await;
    let client = connect(&server.url, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(client.error("garbage").await, TransportError::Wire(WireError::NotJson(_))));
}

#[tokio::test]
async fn closing_disconnects() {
    for closes_first in [true, false] {
        let (closed, mut closed_receiver) = mpsc::channel(1);
        let server = TestServer::start(move |_, mut reply| {
            let closed = closed.clone();
            async move {
                reply.events().await;
                reply.raw("event: endpoint\ndata: /m\n\n").await;
                reply.disconnected().await;
                closed.send(()).await.unwrap();
                None
            }
        })
        .await;
        let client = connect(&server.url, Duration::from_secs(5)).await.unwrap();
        let mut pending = client.requests.register().unwrap();
        if closes_first {
            client.transport.close().await;
            assert_eq!(pending.response().await, Err(TransportError::Closed));
            assert_eq!(client.transport.send(request(9, "ping")).await, Err(TransportError::Closed));
        }
        drop(client);
        timeout(Duration::from_secs(1), closed_receiver.recv()).await.expect("the stream stayed open");
    }
}

#[tokio::test]
async fn servers_without_http_sse_fail_fast() {
    let server = TestServer::start(|request, mut reply| async move {
        match request.path.as_str() {
            "/405" => reply.full(405, &[], "").await,
            "/html" => reply.full(200, &[("Content-Type", "text/html")], "<html>").await,
            "/json" => reply.full(200, &[("Content-Type", "application/json")], "{}").await,
            "/end" => reply.events().await,
            _ => {
                reply.events().await;
                reply.raw("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n").await;
                reply.disconnected().await;
            }
        }
        Some(reply)
    })
    .await;
    let base = server.url.trim_end_matches("/mcp");
    assert!(matches!(
        connect_error(&format!("{base}/405")).await,
        TransportError::Status { status: 405, .. }
    ));
    assert!(matches!(connect_error(&format!("{base}/html")).await, TransportError::UnexpectedResponse(_)));
    assert!(matches!(connect_error(&format!("{base}/json")).await, TransportError::UnexpectedResponse(_)));
    assert!(matches!(connect_error(&format!("{base}/end")).await, TransportError::ConnectionLost(_)));
    let start = Instant::now();
    assert!(matches!(connect_error(&format!("{base}/silent")).await, TransportError::Unreachable(_)));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_rejected_post_fails_only_its_request() {
    let server = TestServer::start(|request, mut reply| async move {
        if request.method == "POST" {
            reply.full(404, &[], "no such session").await;
            return Some(reply);
        }
        reply.events().await;
        reply.raw("event: endpoint\ndata: /m\n\n").await;
        reply.disconnected().await;
        None
    })
    .await;
    let client = connect(&server.url, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(client.error("tools/list").await, TransportError::Status { status: 404, .. }));
    assert_eq!(client.requests.closed(), None);
}
