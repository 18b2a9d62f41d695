//! Hostile and sloppy clients are rejected in time, without effect on others.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    client::Client,
    test_server::{ServerBuilder, TestServer},
};

/// Sends bytes and reads until the server closes or nothing arrives for a while.
async fn send(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may have closed already.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let mut buffer = vec![0; 16 << 10];
    while let Ok(Ok(length)) =
        tokio::time::timeout(Duration::from_millis(300), stream.read(&mut buffer)).await
    {
        if length == 0 {
            break;
        }
        answer.extend_from_slice(&buffer[..length]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

const JSON: &str = "Content-Type: application/json\r\n";
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn foreign_hosts_and_origins_are_rejected() {
    let server = TestServer::new().await;
    let request = |headers: &str| {
        format!("POST /mcp HTTP/1.1\r\n{headers}{JSON}Content-Length: {}\r\n\r\n{PING}", PING.len())
    };
    for (headers, status) in [
        ("Host: localhost\r\n", "200"),
        ("Host: evil.example\r\n", "403"),
        ("Host: localhost\r\nHost: evil.example\r\n", "403"),
        ("", "403"),
        ("Host: localhost\r\nOrigin: http://evil.example\r\n", "403"),
        ("Host: evil.example\r\nOrigin: http://localhost\r\n", "403"),
        ("Host: localhost\r\nOrigin: null\r\n", "403"),
        ("Host: localhost\r\nOrigin: http://localhost:3000\r\n", "200"),
    ] {
        let answer = send(&server.address, request(headers).as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers} {answer}");
    }
    server.close().await;
}

#[tokio::test]
async fn every_path_needs_the_token() {
    let mut builder = ServerBuilder::default().with_token("s3cret-token");
    builder.http.legacy_sse = true;
    let server = builder.build().await;
    for path in ["/mcp", "/mcp/other", "/sse", "/messages", "/", "/anything"] {
        for (method, header) in [("GET", ""), ("POST", "Authorization: Bearer wrong\r\n"), ("DELETE", "")] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{header}{JSON}Content-Length: 0\r\n\r\n"
            );
            let answer = send(&server.address, request.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 401"), "{request} {answer}");
            assert!(answer.contains("www-authenticate: Bearer") && !answer.contains("s3cret"));
        }
    }
    let client = Client::new(&server.address).with_token("s3cret-token");
    assert_eq!(client.call(1, "echo", json!({})).await.text(), "{}");
    server.close().await;
}

#[tokio::test]
async fn preflight_requests_are_answered() {
    let server = ServerBuilder::default().with_token("t").build().await;
    let preflight = "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:5173\r\n\
               Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization, mcp-method\r\n\r\n";
    let answer = send(&server.address, preflight.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert!(answer.contains("access-control-allow-origin: http://localhost:5173"));
    assert!(answer.contains("access-control-allow-headers: authorization, mcp-method"));
    server.close().await;
}

#[tokio::test]
async fn an_invalid_message_is_rejected_and_the_next_is_answered() {
    let server = TestServer::new().await;
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let twice = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#;
    for (body, status, code) in [
        ("", "400", "-32700"),
        ("{", "400", "-32700"),
        ("nonsense", "400", "-32700"),
        ("{}", "400", "-32600"),
        ("[]", "400", "-32600"),
        (twice, "400", "-32600"),
        (deep.as_str(), "400", "-32600"),
        (r#"{"jsonrpc":"2.0","id":null,"result":1}"#, "400", "-32600"),
    ] {
        let answer = send(&server.address, &post(JSON, body)).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(code),
            "{body:.50} {answer}"
        );
    }
    for (headers, status) in [
        ("", "415"),
        ("Content-Type: text/plain\r\n", "415"),
        ("Content-Type: application/json\r\nAccept: text/html\r\n", "406"),
        ("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "415"),
        ("Content-Type: application/json; charset=utf-8\r\n", "200"),
    ] {
        let answer = send(&server.address, &post(headers, PING)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers} {answer}");
    }
    let trailing_garbage = [post(JSON, "ab"), vec![0xff, 0xfe]].concat();
    send(&server.address, &trailing_garbage).await;
    let mut not_utf8 = post(JSON, "ab");
    let end = not_utf8.len() - 2;
    not_utf8.splice(end.., [0xff, 0xfe]);
    assert!(send(&server.address, &not_utf8).await.starts_with("HTTP/1.1 400"));
    Client::new(&server.address).call(1, "echo", json!({})).await.text();
    server.close().await;
}

#[tokio::test]
async fn heads_and_bodies_have_limits_of_size_and_time() {
    let mut builder = ServerBuilder::default();
    builder.config.limits.message_bytes = 10_000;
    builder.http.body_timeout = Duration::from_millis(100);
    builder.http.idle_timeout = Duration::from_millis(200);
    builder.http.keep_alive_interval = Duration::from_millis(100);
    let server = builder.build().await;
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(20_000));
    assert!(send(&server.address, &post(JSON, &large)).await.starts_with("HTTP/1.1 413"));
    let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    // The connection may close before the error is read: the client is still sending.
    let refused = send(&server.address, head.as_bytes()).await;
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 431"), "{refused}");
    let many = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(1_000));
    assert!(send(&server.address, many.as_bytes()).await.starts_with("HTTP/1.1 4"));
    let slow = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{JSON}Content-Length: 100\r\n\r\n{{");
    assert!(send(&server.address, slow.as_bytes()).await.starts_with("HTTP/1.1 408"));
    for half in [b"".as_slice(), b"POST /mcp HT"] {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(half).await.unwrap();
        let closed = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut [0])).await;
        assert_eq!(closed.unwrap().unwrap(), 0);
    }
    server.close().await;
}

#[tokio::test]
async fn slow_calls_are_not_cut_off() {
    let mut builder = ServerBuilder::default();
    builder.http.idle_timeout = Duration::from_millis(40);
    builder.http.keep_alive_interval = Duration::from_millis(20);
    let server = builder.build().await;
    let client = Client::new(&server.address);
    let caller = client.clone();
    let calling = tokio::spawn(async move { caller.call(1, "slow", json!({})).await });
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let stream = client.send_modern(2, "subscriptions/listen", filter, json!({})).await;
    let mut events = crate::client::stream(stream);
    crate::client::next(&mut events).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.tools.release.notify_one();
    assert_eq!(calling.await.unwrap().text(), "done");
    server.tools.offer(crate::tools::definitions(7));
    assert_eq!(crate::client::next(&mut events).await["method"], "notifications/tools/list_changed");
    server.close().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let mut builder = ServerBuilder::default();
    builder.http.max_connections = 2;
    let server = builder.build().await;
    let first = TcpStream::connect(&server.address).await.unwrap();
    let _second = TcpStream::connect(&server.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(send(&server.address, &post(JSON, PING)).await, "");
    drop(first);
    assert!(send(&server.address, &post(JSON, PING)).await.starts_with("HTTP/1.1 200"));
    drop(_second);
    server.close().await;
}

#[tokio::test]
async fn a_disconnect_has_no_effect_on_others() {
    let server = TestServer::new().await;
    let whole = post(JSON, PING);
    for length in (0..whole.len()).step_by(7) {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(&whole[..length]).await.unwrap();
    }
    assert_eq!(Client::new(&server.address).call(1, "echo", json!({})).await.text(), "{}");
    server.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_bring_the_server_down(
        bytes in proptest::collection::vec(any::<u8>(), 0..400), body in ".{0,200}", params in "[\\[\\]{}\",:a-z0-9 ]{0,80}"
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = TestServer::new().await;
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            let requests = [bytes, post(JSON, &body), post(JSON, &message)];
            for request in &requests {
                let mut stream = TcpStream::connect(&server.address).await.unwrap();
                let _ = stream.write_all(request).await;
                let _ = stream.shutdown().await;
                let mut answer = Vec::new();
                let _ = tokio::time::timeout(Duration::from_secs(2), stream.read_to_end(&mut answer)).await;
            }
            assert_eq!(Client::new(&server.address).call(1, "echo", json!({})).await.text(), "{}");
        });
    }
}
