//! Streamable HTTP with hostile servers: wrong, endless and truncated responses, redirects, lost connections.

use std::time::Instant;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::*;
use crate::transport::http::test_server::*;
use toolyard_mcp::WireError;

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn a_response_to_another_request_is_dropped() {
    let server = TestServer::start(|request, mut reply| async move {
        let wrong_response = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": "crossed"}).to_string();
        if request.json()["method"] == "as/json" {
            reply.json(wrong_response(json!(1))).await;
            return Some(reply);
        }
        reply.events().await;
        for id in [json!(1), json!(request.id() + 1), json!(request.id().to_string()), Value::Null] {
            reply.event(wrong_response(id)).await;
        }
        reply.event(request.response(&json!("right"))).await;
        None
    })
    .await;
    let client = TestClient::new(&server.url);
    let mut other = client.requests.register().unwrap();
    assert_eq!(client.result("as/events").await, json!("right"));
    assert!(matches!(client.error("as/json").await, TransportError::UnexpectedResponse(_)));
    let none = timeout(Duration::from_millis(50), other.response()).await;
    assert!(none.is_err(), "the other request got no answer: {none:?}");
    assert_eq!(client.requests.unmatched_responses(), 5);
}

#[tokio::test]
async fn unexpected_content_types_are_named() {
    let server = TestServer::start(|request, mut reply| async move {
        match request.json()["method"].as_str().unwrap() {
            "html" => reply.full(200, &[("Content-Type", "text/html; charset=utf-8")], "<html>").await,
            "none" => reply.full(200, &[], "{}").await,
            "gzip" => reply.full(200, &[JSON, ("Content-Encoding", "gzip")], [0x1f, 0x8b]).await,
            _ => reply.full(200, &[JSON], "{ not json").await,
        }
        Some(reply)
    })
    .await;
    let client = TestClient::new(&server.url);
    let unexpected = |text: &str| TransportError::UnexpectedResponse(text.to_owned());
    assert_eq!(client.error("html").await, unexpected("text/html"));
    assert_eq!(client.error("none").await, unexpected("a body without content type"));
    assert_eq!(client.error("gzip").await, unexpected("gzip compression"));
    assert!(matches!(client.error("garbage").await, TransportError::Wire(WireError::NotJson(_))));
}

#[tokio::test]
async fn redirects_stay_at_the_same_origin() {
    let other = TestServer::start(|_, mut reply| async move {
        reply.json("{}").await;
        Some(reply)
    })
    .await;
    let elsewhere = other.url.clone();
    let server = TestServer::start(move |request, mut reply| {
        let elsewhere = elsewhere.clone();
        async move {
            match (request.path.as_str(), request.json()["method"].as_str().unwrap_or_default()) {
                ("/mcp/", _) => reply.json(request.response(&json!("arrived"))).await,
                (_, "home") => reply.full(307, &[("Location", "/mcp/")], "").await,
                (_, "loop") => reply.full(308, &[("Location", "/mcp")], "").await,
                (_, "see") => reply.full(303, &[("Location", "/mcp/")], "").await,
                (_, "away") => {
                    reply.full(307, &[("Location", &format!("{elsewhere}?token=hidden"))], "").await;
                }
                _ => reply.full(307, &[], "").await,
            }
            Some(reply)
        }
    })
    .await;
    let target =
        HttpTarget::new(&server.url, [("Authorization".to_owned(), "Bearer abc".to_owned())]).unwrap();
    let client = TestClient::with(target, WireLimits::default());
    assert_eq!(client.result("home").await, json!("arrived"));
    assert_eq!(server.received()[1].header("authorization"), Some("Bearer abc"));
    let before = server.received().len();
    for method in ["loop", "see", "away", "nowhere"] {
        let error = client.error(method).await;
        assert!(matches!(&error, TransportError::Redirect(_)), "{method}: {error:?}");
        assert!(!error.to_string().contains("hidden"), "{error}");
    }
    assert_eq!(server.received().len() - before, 4 + 1 + 1 + 1, "a loop is left after three redirects");
    assert!(other.received().is_empty(), "the other server got no request");
}

#[tokio::test]
async fn unreachable_and_lost_connections_are_distinguished() {
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error =
        TestClient::new(&format!("http://user:word@{address}/mcp?key=hidden")).error("tools/list").await;
    assert!(matches!(&error, TransportError::Unreachable(_)), "{error:?}");
    assert!(error.had_no_effect() && !error.to_string().contains("hidden"), "{error}");
    let error = TestClient::new("http://name.invalid/mcp").error("tools/list").await;
    assert!(matches!(&error, TransportError::Unreachable(_)), "{error:?}");
    let server = TestServer::start(|_, reply| async move {
        reply.reset();
        None
    })
    .await;
    let error = TestClient::new(&server.url).error("tools/call").await;
    assert!(matches!(&error, TransportError::ConnectionLost(_)) && !error.had_no_effect(), "{error:?}");
}

#[tokio::test]
async fn a_server_that_redirects_and_disappears_has_received_the_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let received = stream.read(&mut [0; 16 << 10]).await.unwrap();
        assert!(received > 0);
        let head = "HTTP/1.1 307 Moved\r\nLocation: /mcp/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
    });
    let error = TestClient::new(&url).error("tools/call").await;
    assert!(matches!(&error, TransportError::ConnectionLost(_)) && !error.had_no_effect(), "{error:?}");
}

#[tokio::test]
async fn a_truncated_body_or_stream_is_a_lost_connection() {
    let server = TestServer::start(|request, mut reply| async move {
        match request.json()["method"].as_str().unwrap() {
            "body" => {
                reply.head(200, &[JSON, ("Content-Length", "1000")]).await;
                reply.raw("{").await;
                reply.reset();
            }
            "head" => {
                reply.raw("HTTP/1.1 200 OK\r\n").await;
                reply.flood(b"X-Noise: 0123456789\r\n").await;
            }
            "half" => {
                reply.events().await;
                reply.raw("data: {\"jsonrpc\":").await;
            }
            _ => reply.events().await,
        }
        None
    })
    .await;
    let client = TestClient::new(&server.url);
    for method in ["body", "head", "half", "nothing"] {
        let error = client.error(method).await;
        assert!(matches!(error, TransportError::ConnectionLost(_)), "{method}: {error:?}");
    }
}

#[tokio::test]
async fn a_response_that_cannot_be_resumed_may_have_had_an_effect() {
    let server = TestServer::start(|request, mut reply| async move {
        if request.method == "POST" {
            reply.events().await;
            reply.raw("id: e-1\nretry: 1\ndata:\n\n").await;
            return None;
        }
        reply.full(404, &[], "").await;
        Some(reply)
    })
    .await;
    let error = TestClient::new(&server.url).error("tools/call").await;
    assert!(matches!(&error, TransportError::ConnectionLost(_)) && !error.had_no_effect(), "{error:?}");
}

#[tokio::test]
async fn dropping_a_request_closes_its_stream_at_once() {
    for responds in [false, true] {
        for (version, cancels) in [("2026-07-28", true), ("2025-11-25", false)] {
            let (closed, mut closed_receiver) = mpsc::channel(1);
            let server = TestServer::start(move |_, mut reply| {
                let closed = closed.clone();
                async move {
                    if responds {
                        reply.events().await;
                        reply.raw(": working\n\n").await;
                    }
                    reply.disconnected().await;
                    closed.send(()).await.unwrap();
                    None
                }
            })
            .await;
            let client = TestClient::new(&server.url);
            client.transport.set_protocol_version(Some(version));
            let pending = client.requests.register().unwrap();
            let sending = client.transport.send(request(pending.id, "tools/call"));
            assert!(timeout(Duration::from_millis(100), sending).await.is_err());
            assert!(client.requests.remove(pending.id));
            assert_eq!(client.transport.cancels_on_drop(), cancels);
            timeout(Duration::from_secs(1), closed_receiver.recv()).await.expect("the server saw no close");
        }
    }
}

#[tokio::test]
async fn a_server_cannot_override_headers() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.json(request.response(&json!(1))).await;
        Some(reply)
    })
    .await;
    let client = TestClient::new(&server.url);
    for (name, value) in [("Authorization", "x"), ("Mcp-Session-Id", "x"), ("Mcp-Param-X", "a\r\nEvil: 1")] {
        let mut message = request(1, "tools/call");
        message.headers = vec![(name.to_owned(), value.to_owned())];
        let error = client.transport.send(message).await.unwrap_err();
        assert!(error.had_no_effect());
    }
    assert!(server.received().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_responses_out_of_order_are_never_mixed_up() {
    let server = TestServer::start(|request, mut reply| async move {
        // Later requests are answered first, in either form.
        tokio::time::sleep(Duration::from_millis(300_u64.saturating_sub(request.id() / 5))).await;
        let response = request.response(&json!({"echo": request.id()}));
        if request.id() % 2 == 0 {
            reply.json(response).await;
            return Some(reply);
        }
        reply.events().await;
        reply.event(json!({"jsonrpc": "2.0", "id": request.id() + 1, "result": "crossed"}).to_string()).await;
        reply.event(response).await;
        None
    })
    .await;
    let client = Arc::new(TestClient::new(&server.url));
    let mut tasks = Vec::new();
    for _ in 0..1_200 {
        let mut pending = client.requests.register().unwrap();
        let client = Arc::clone(&client);
        tasks.push(tokio::spawn(async move {
            let id = pending.id;
            let response = pending.response_to(client.transport.send(request(id, "tools/call"))).await;
            let response = response.unwrap().unwrap();
            client.requests.remove(id);
            assert_eq!(response.get(), json!({"echo": pending.id}).to_string());
        }));
    }
    for task in tasks {
        timeout(Duration::from_secs(60), task).await.unwrap().unwrap();
    }
    assert_eq!(client.requests.len(), 0);
    assert_eq!(client.requests.unmatched_responses(), 600, "every made-up answer was counted and dropped");
}

#[tokio::test]
async fn a_large_response_is_rejected_by_its_length() {
    let (closed_sender, closed) = oneshot::channel();
    let closed_sender = Arc::new(Mutex::new(Some(closed_sender)));
    let server = TestServer::start(move |_, mut reply| {
        let closed_sender = Arc::clone(&closed_sender);
        async move {
            reply.head(200, &[JSON, ("Content-Length", "104857600")]).await;
            reply.disconnected().await;
            let _ = closed_sender.lock().take().unwrap().send(());
            None
        }
    })
    .await;
    let limit = WireLimits::default().message_bytes;
    let error =
        timeout(Duration::from_secs(1), TestClient::new(&server.url).error("tools/call")).await.unwrap();
    assert_eq!(error, TransportError::Wire(WireError::TooLong { what: "a response", limit }));
    timeout(Duration::from_secs(1), closed).await.expect("the connection stayed open").unwrap();
}

#[tokio::test]
async fn endless_responses_are_cut_at_the_limit_with_little_memory() {
    let server = TestServer::start(|request, mut reply| async move {
        let piece = match request.json()["method"].as_str().unwrap() {
            "body" => {
                reply.head(200, &[JSON]).await;
                vec![b' '; 1 << 16]
            }
            kind => {
                reply.events().await;
                match kind {
                    "one event" => {
                        reply.raw("data: ").await;
                        vec![b'x'; 1 << 16]
                    }
                    "comments" => b": nothing\n".repeat(5_000),
                    _ => {
                        b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n".repeat(1_000)
                    }
                }
            }
        };
        let written = reply.flood(&piece).await;
        assert!(written < 60 << 20, "{written} bytes were taken");
        None
    })
    .await;
    let client = TestClient::new(&server.url);
    let (before, start) = (peak_memory(), Instant::now());
    for method in ["body", "one event", "comments", "notifications"] {
        let error = client.error(method).await;
        assert!(matches!(error, TransportError::Wire(WireError::TooLong { .. })), "{method}: {error:?}");
        let extra = peak_memory().saturating_sub(before);
        println!("{method}: {error}; {} kB more memory after {:?}", extra >> 10, start.elapsed());
        assert!(extra < 32 << 20, "{method}: {extra} bytes");
    }
}

#[tokio::test]
async fn a_listen_stream_has_no_total_limit() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.events().await;
        for _ in 0..500 {
            reply.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
        }
        reply.event(request.response(&json!("end"))).await;
        None
    })
    .await;
    let limits = WireLimits { message_bytes: 4_000, ..WireLimits::default() };
    let client = TestClient::with(HttpTarget::new(&server.url, []).unwrap(), limits);
    assert_eq!(client.result("subscriptions/listen").await, json!("end"));
    let error = client.error("tools/call").await;
    assert!(matches!(error, TransportError::Wire(WireError::TooLong { limit: 8_000, .. })), "{error:?}");
}

#[tokio::test]
async fn a_dropped_request_is_not_resumed() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.events().await;
        reply.raw("id: 1\nretry: 20\ndata:\n\n").await;
        None
    })
    .await;
    let client = TestClient::new(&server.url);
    let pending = client.requests.register().unwrap();
    let sending = client.transport.send(request(pending.id, "tools/call"));
    assert!(timeout(Duration::from_millis(200), sending).await.is_err());
    assert!(server.received().len() > 1, "resumed while the request is pending");
    let before = server.received().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.received().len(), before);
}
