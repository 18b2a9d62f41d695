use std::time::Instant;

use serde_json::json;
use tokio::{
    sync::{broadcast, mpsc},
    time::timeout,
};

use super::*;
use crate::{
    client::{Heard, http_client, http_test_server::*},
    wire::WireError,
};

async fn connect(url: &str, startup: Duration) -> Result<Peer<LegacySse>, TransportError> {
    let limits = WireLimits::default();
    let (exchange, heard) = Exchange::new(limits.in_flight);
    let exchange = Arc::new(exchange);
    let target = HttpTarget::new(url, [("X-Key".to_owned(), "value".to_owned())]).unwrap();
    let client = http_client().unwrap();
    let transport = LegacySse::connect(target, Arc::clone(&exchange), limits, client, startup).await?;
    Ok(Peer { transport, exchange, heard })
}

async fn refused(url: &str) -> TransportError {
    let outcome = timeout(Duration::from_secs(5), connect(url, Duration::from_millis(300))).await;
    outcome.expect("it hangs").err().expect("it connected")
}

/// A server that names `endpoint` and answers each POST on the stream, in whatever order they are done.
async fn echo_server(endpoint: &'static str) -> TestServer {
    let (posted, _) = broadcast::channel::<String>(4_096);
    TestServer::start(move |seen, mut reply| {
        let posted = posted.clone();
        async move {
            if seen.method == "POST" {
                reply.full(202, &[], "Accepted").await;
                let answer = match seen.json()["method"].as_str() {
                    Some("stop") => "stop".to_owned(),
                    Some("garbage") => "{ not json".to_owned(),
                    _ if seen.json()["id"].is_u64() => seen.answer(&json!({"echo": seen.id()})),
                    _ => return Some(reply),
                };
                posted.send(answer).unwrap();
                return Some(reply);
            }
            let mut answers = posted.subscribe();
            reply.events().await;
            reply.raw(format!("event: endpoint\ndata: {endpoint}\n\n: ping\n\n")).await;
            reply.event(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#).await;
            while let Ok(answer) = answers.recv().await {
                if answer == "stop" {
                    break;
                }
                reply.event(answer).await;
            }
            None
        }
    })
    .await
}

#[tokio::test]
async fn messages_are_posted_and_answers_come_on_the_stream() {
    let server = echo_server("/messages?session_id=7").await;
    let mut peer = connect(&server.url, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(peer.heard.recv().await, Some(Heard::Notification { .. })));
    assert_eq!(peer.result("initialize").await, json!({"echo": 1}));
    peer.transport.set_protocol_version(Some("2025-06-18"));
    peer.transport.send(notification("notifications/initialized")).await.unwrap();
    assert_eq!(peer.result("tools/list").await, json!({"echo": 2}));
    let seen = server.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].header("accept")), ("GET", Some("text/event-stream")));
    assert!(seen.iter().all(|seen| seen.header("x-key") == Some("value")));
    assert_eq!((seen[3].method.as_str(), seen[3].path.as_str()), ("POST", "/messages?session_id=7"));
    assert_eq!(seen[3].header("mcp-protocol-version"), Some("2025-06-18"));
    assert!(!peer.transport.forget(2), "closing a stream would not tell which request is meant");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_get_their_own_answers() {
    let server = echo_server("messages").await;
    let peer = Arc::new(connect(&server.url, Duration::from_secs(5)).await.unwrap());
    let mut tasks = Vec::new();
    for _ in 0..300 {
        let peer = Arc::clone(&peer);
        tasks.push(tokio::spawn(async move {
            let mut waiting = peer.exchange.wait().unwrap();
            peer.transport.send(request(waiting.id, "tools/call")).await.unwrap();
            let answer = waiting.answer().await.unwrap().unwrap();
            assert_eq!(answer.get(), json!({"echo": waiting.id}).to_string());
        }));
    }
    for task in tasks {
        timeout(Duration::from_secs(30), task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_endpoint_elsewhere_is_refused() {
    for endpoint in [
        "http://127.0.0.1:1/messages",
        "https://evil.example/m?token=hidden",
        "//evil.example/m",
        "file:///etc/passwd",
    ] {
        let server = echo_server(endpoint).await;
        let error = refused(&server.url).await;
        assert!(matches!(&error, TransportError::ForeignEndpoint(_)), "{endpoint}: {error:?}");
        assert!(error.had_no_effect() && !error.to_string().contains("hidden"), "{error}");
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn an_endpoint_is_only_a_place_on_the_same_server() {
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
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    let server = echo_server("/m").await;
    let mut peer = connect(&server.url, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(peer.error("stop").await, TransportError::Broken(_)));
    assert!(matches!(peer.error("tools/list").await, TransportError::Broken(_)));
    peer.heard.recv().await.unwrap();
    assert!(matches!(peer.heard.recv().await, Some(Heard::Closed(TransportError::Broken(_)))));
}

#[tokio::test]
async fn garbage_on_the_stream_ends_it_with_the_reason() {
    let server = echo_server("/m").await;
    let peer = connect(&server.url, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(peer.error("garbage").await, TransportError::Wire(WireError::NotJson(_))));
}

#[tokio::test]
async fn closing_hangs_up() {
    for politely in [true, false] {
        let (closed, mut hung_up) = mpsc::channel(1);
        let server = TestServer::start(move |_, mut reply| {
            let closed = closed.clone();
            async move {
                reply.events().await;
                reply.raw("event: endpoint\ndata: /m\n\n").await;
                reply.hung_up().await;
                closed.send(()).await.unwrap();
                None
            }
        })
        .await;
        let peer = connect(&server.url, Duration::from_secs(5)).await.unwrap();
        let mut waiting = peer.exchange.wait().unwrap();
        if politely {
            peer.transport.close().await;
            assert_eq!(waiting.answer().await, Err(TransportError::Closed));
            assert_eq!(peer.transport.send(request(9, "ping")).await, Err(TransportError::Closed));
        }
        drop(peer);
        timeout(Duration::from_secs(1), hung_up.recv()).await.expect("the stream stayed open");
    }
}

#[tokio::test]
async fn whoever_does_not_speak_it_is_not_waited_for() {
    let server = TestServer::start(|seen, mut reply| async move {
        match seen.path.as_str() {
            "/405" => reply.full(405, &[], "").await,
            "/html" => reply.full(200, &[("Content-Type", "text/html")], "<html>").await,
            "/json" => reply.full(200, &[("Content-Type", "application/json")], "{}").await,
            "/end" => reply.events().await,
            _ => {
                reply.events().await;
                reply.raw("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n").await;
                reply.hung_up().await;
            }
        }
        Some(reply)
    })
    .await;
    let base = server.url.trim_end_matches("/mcp");
    assert!(matches!(refused(&format!("{base}/405")).await, TransportError::Status { status: 405, .. }));
    assert!(matches!(refused(&format!("{base}/html")).await, TransportError::NotTheProtocol(_)));
    assert!(matches!(refused(&format!("{base}/json")).await, TransportError::NotTheProtocol(_)));
    assert!(matches!(refused(&format!("{base}/end")).await, TransportError::Broken(_)));
    let start = Instant::now();
    assert!(matches!(refused(&format!("{base}/silent")).await, TransportError::Unreachable(_)));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_post_that_is_refused_fails_alone() {
    let server = TestServer::start(|seen, mut reply| async move {
        if seen.method == "POST" {
            reply.full(404, &[], "no such session").await;
            return Some(reply);
        }
        reply.events().await;
        reply.raw("event: endpoint\ndata: /m\n\n").await;
        reply.hung_up().await;
        None
    })
    .await;
    let peer = connect(&server.url, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(peer.error("tools/list").await, TransportError::Status { status: 404, .. }));
    assert_eq!(peer.exchange.closed(), None);
}
