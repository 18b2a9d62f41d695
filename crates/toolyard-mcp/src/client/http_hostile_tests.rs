use std::time::Instant;

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::*;
use crate::{client::http_test_server::*, wire::WireError};

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn an_answer_to_another_request_is_not_believed() {
    let server = TestServer::start(|seen, mut reply| async move {
        let crossed = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": "crossed"}).to_string();
        if seen.json()["method"] == "as/json" {
            reply.json(crossed(json!(1))).await;
            return Some(reply);
        }
        reply.events().await;
        for id in [json!(1), json!(seen.id() + 1), json!(seen.id().to_string()), Value::Null] {
            reply.event(crossed(id)).await;
        }
        reply.event(seen.answer(&json!("right"))).await;
        None
    })
    .await;
    let peer = Peer::new(&server.url);
    let mut other = peer.exchange.wait().unwrap();
    assert_eq!(peer.result("as/events").await, json!("right"));
    assert!(matches!(peer.error("as/json").await, TransportError::NotTheProtocol(_)));
    let none = timeout(Duration::from_millis(50), other.answer()).await;
    assert!(none.is_err(), "the other request got no answer: {none:?}");
    assert_eq!(peer.exchange.ignored().0, 5);
}

#[tokio::test]
async fn what_is_not_the_protocol_is_said_to_be_so() {
    let server = TestServer::start(|seen, mut reply| async move {
        match seen.json()["method"].as_str().unwrap() {
            "html" => reply.full(200, &[("Content-Type", "text/html; charset=utf-8")], "<html>").await,
            "none" => reply.full(200, &[], "{}").await,
            "gzip" => reply.full(200, &[JSON, ("Content-Encoding", "gzip")], [0x1f, 0x8b]).await,
            _ => reply.full(200, &[JSON], "{ not json").await,
        }
        Some(reply)
    })
    .await;
    let peer = Peer::new(&server.url);
    let said = |text: &str| TransportError::NotTheProtocol(text.to_owned());
    assert_eq!(peer.error("html").await, said("text/html"));
    assert_eq!(peer.error("none").await, said("a body of no type"));
    assert_eq!(peer.error("gzip").await, said("gzip compression"));
    assert!(matches!(peer.error("garbage").await, TransportError::Wire(WireError::NotJson(_))));
}

#[tokio::test]
async fn redirects_stay_at_home() {
    let other = TestServer::start(|_, mut reply| async move {
        reply.json("{}").await;
        Some(reply)
    })
    .await;
    let elsewhere = other.url.clone();
    let server = TestServer::start(move |seen, mut reply| {
        let elsewhere = elsewhere.clone();
        async move {
            match (seen.path.as_str(), seen.json()["method"].as_str().unwrap_or_default()) {
                ("/mcp/", _) => reply.json(seen.answer(&json!("arrived"))).await,
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
    let peer = Peer::with(target, WireLimits::default());
    assert_eq!(peer.result("home").await, json!("arrived"));
    assert_eq!(server.seen()[1].header("authorization"), Some("Bearer abc"));
    let before = server.seen().len();
    for method in ["loop", "see", "away", "nowhere"] {
        let error = peer.error(method).await;
        assert!(matches!(&error, TransportError::Redirect(_)), "{method}: {error:?}");
        assert!(!error.to_string().contains("hidden"), "{error}");
    }
    assert_eq!(server.seen().len() - before, 4 + 1 + 1 + 1, "a loop is left after three times");
    assert!(other.seen().is_empty(), "nobody else got anything");
}

#[tokio::test]
async fn nobody_there_is_not_the_same_as_gone_away() {
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = Peer::new(&format!("http://user:word@{address}/mcp?key=hidden")).error("tools/list").await;
    assert!(matches!(&error, TransportError::Unreachable(_)), "{error:?}");
    assert!(error.had_no_effect() && !error.to_string().contains("hidden"), "{error}");
    let error = Peer::new("http://name.invalid/mcp").error("tools/list").await;
    assert!(matches!(&error, TransportError::Unreachable(_)), "{error:?}");
    let server = TestServer::start(|_, reply| async move {
        reply.reset();
        None
    })
    .await;
    let error = Peer::new(&server.url).error("tools/call").await;
    assert!(matches!(&error, TransportError::Broken(_)) && !error.had_no_effect(), "{error:?}");
}

#[tokio::test]
async fn a_body_or_a_stream_that_breaks_off_is_broken() {
    let server = TestServer::start(|seen, mut reply| async move {
        match seen.json()["method"].as_str().unwrap() {
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
    let peer = Peer::new(&server.url);
    for method in ["body", "head", "half", "nothing"] {
        let error = peer.error(method).await;
        assert!(matches!(error, TransportError::Broken(_)), "{method}: {error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_fetched_is_broken_and_not_without_effect() {
    let server = TestServer::start(|seen, mut reply| async move {
        if seen.method == "POST" {
            reply.events().await;
            reply.raw("id: e-1\nretry: 1\ndata:\n\n").await;
            return None;
        }
        reply.full(404, &[], "").await;
        Some(reply)
    })
    .await;
    let error = Peer::new(&server.url).error("tools/call").await;
    assert!(matches!(&error, TransportError::Broken(_)) && !error.had_no_effect(), "{error:?}");
}

#[tokio::test]
async fn forgetting_closes_the_stream_at_once() {
    for answered in [false, true] {
        for (version, tells) in [("2026-07-28", true), ("2025-11-25", false)] {
            let (closed, mut hung_up) = mpsc::channel(1);
            let server = TestServer::start(move |_, mut reply| {
                let closed = closed.clone();
                async move {
                    if answered {
                        reply.events().await;
                        reply.raw(": working\n\n").await;
                    }
                    reply.hung_up().await;
                    closed.send(()).await.unwrap();
                    None
                }
            })
            .await;
            let peer = Peer::new(&server.url);
            peer.transport.set_protocol_version(Some(version));
            let waiting = peer.exchange.wait().unwrap();
            let sending = peer.transport.send(request(waiting.id, "tools/call"));
            assert!(timeout(Duration::from_millis(100), sending).await.is_err());
            assert!(peer.exchange.forget(waiting.id));
            assert_eq!(peer.transport.forget(waiting.id), tells);
            timeout(Duration::from_secs(1), hung_up.recv()).await.expect("the server saw no close");
        }
    }
}

#[tokio::test]
async fn a_server_cannot_choose_our_headers() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.json(seen.answer(&json!(1))).await;
        Some(reply)
    })
    .await;
    let peer = Peer::new(&server.url);
    for (name, value) in [("Authorization", "x"), ("Mcp-Session-Id", "x"), ("Mcp-Param-X", "a\r\nEvil: 1")] {
        let mut message = request(1, "tools/call");
        message.headers = vec![(name.to_owned(), value.to_owned())];
        let error = peer.transport.send(message).await.unwrap_err();
        assert!(error.had_no_effect());
    }
    assert!(server.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_answers_out_of_order_are_never_crossed() {
    let server = TestServer::start(|seen, mut reply| async move {
        // Later requests are answered first, in either form.
        tokio::time::sleep(Duration::from_millis(300_u64.saturating_sub(seen.id() / 5))).await;
        let answer = seen.answer(&json!({"echo": seen.id()}));
        if seen.id() % 2 == 0 {
            reply.json(answer).await;
            return Some(reply);
        }
        reply.events().await;
        reply.event(json!({"jsonrpc": "2.0", "id": seen.id() + 1, "result": "crossed"}).to_string()).await;
        reply.event(answer).await;
        None
    })
    .await;
    let peer = Arc::new(Peer::new(&server.url));
    let mut tasks = Vec::new();
    for _ in 0..1_200 {
        let mut waiting = peer.exchange.wait().unwrap();
        let peer = Arc::clone(&peer);
        tasks.push(tokio::spawn(async move {
            let id = waiting.id;
            let answer = waiting.answer_to(peer.transport.send(request(id, "tools/call"))).await;
            let answer = answer.unwrap().unwrap();
            peer.exchange.forget(id);
            assert_eq!(answer.get(), json!({"echo": waiting.id}).to_string());
        }));
    }
    for task in tasks {
        timeout(Duration::from_secs(60), task).await.unwrap().unwrap();
    }
    assert_eq!(peer.exchange.in_flight(), 0);
    assert_eq!(peer.exchange.ignored().0, 600, "every made-up answer was counted and dropped");
}

#[tokio::test]
async fn a_big_answer_is_refused_by_its_length_alone() {
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(Mutex::new(Some(tell)));
    let server = TestServer::start(move |_, mut reply| {
        let tell = Arc::clone(&tell);
        async move {
            reply.head(200, &[JSON, ("Content-Length", "104857600")]).await;
            reply.hung_up().await;
            let _ = lock(&tell).take().unwrap().send(());
            None
        }
    })
    .await;
    let limit = WireLimits::default().message_bytes;
    let error = timeout(Duration::from_secs(1), Peer::new(&server.url).error("tools/call")).await.unwrap();
    assert_eq!(error, TransportError::Wire(WireError::TooLong { what: "an answer", limit }));
    timeout(Duration::from_secs(1), told).await.expect("the connection stayed open").unwrap();
}

#[tokio::test]
async fn what_never_ends_is_cut_at_the_limit_and_costs_little_memory() {
    let server = TestServer::start(|seen, mut reply| async move {
        let piece = match seen.json()["method"].as_str().unwrap() {
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
    let peer = Peer::new(&server.url);
    let (before, start) = (most_memory(), Instant::now());
    for method in ["body", "one event", "comments", "notifications"] {
        let error = peer.error(method).await;
        assert!(matches!(error, TransportError::Wire(WireError::TooLong { .. })), "{method}: {error:?}");
        let extra = most_memory().saturating_sub(before);
        println!("{method}: {error}; {} kB more memory after {:?}", extra >> 10, start.elapsed());
        assert!(extra < 32 << 20, "{method}: {extra} bytes");
    }
}

#[tokio::test]
async fn a_stream_to_listen_to_may_tell_as_much_as_it_likes() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.events().await;
        for _ in 0..500 {
            reply.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
        }
        reply.event(seen.answer(&json!("end"))).await;
        None
    })
    .await;
    let limits = WireLimits { message_bytes: 4_000, ..WireLimits::default() };
    let peer = Peer::with(HttpTarget::new(&server.url, []).unwrap(), limits);
    assert_eq!(peer.result("subscriptions/listen").await, json!("end"));
    let error = peer.error("tools/call").await;
    assert!(matches!(error, TransportError::Wire(WireError::TooLong { limit: 8_000, .. })), "{error:?}");
}

#[tokio::test]
async fn nobody_comes_back_for_an_answer_that_is_not_wanted() {
    let server = TestServer::start(|_, mut reply| async move {
        reply.events().await;
        reply.raw("id: 1\nretry: 20\ndata:\n\n").await;
        None
    })
    .await;
    let peer = Peer::new(&server.url);
    let waiting = peer.exchange.wait().unwrap();
    let sending = peer.transport.send(request(waiting.id, "tools/call"));
    assert!(timeout(Duration::from_millis(200), sending).await.is_err());
    assert!(server.seen().len() > 1, "it comes back while someone waits");
    let before = server.seen().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.seen().len(), before);
}
