//! Shutdown: load balancers are told, in-flight calls end, requests on their way are answered, idle connections close.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use toolyard_core::BoxFuture;
use toolyard_mcp_server::{ReadinessCheck, ReadinessProbe};

use crate::{
    client::Client,
    test_server::{ServerBuilder, TestServer},
};

const PING: &str = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
                    Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

/// A server with this shutdown grace.
async fn with_shutdown_grace(shutdown_grace: Duration) -> TestServer {
    let mut builder = ServerBuilder::default();
    builder.http.shutdown_grace = shutdown_grace;
    builder.build().await
}

/// Everything until the server closes the connection.
async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(10), reading).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn shutdown_waits_for_calls() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let calling = tokio::spawn(async move { client.call(1, "slow", json!({})).await });
    server.tools.wait_for_started(1).await;
    let tools = std::sync::Arc::clone(&server.tools);
    let closing = tokio::spawn(server.close());
    tokio::time::sleep(Duration::from_millis(50)).await;
    tools.release.notify_one();
    assert_eq!(calling.await.unwrap().text(), "done");
    closing.await.unwrap();
}

/// Status and body of a GET without a token, for another host, as a load balancer sends it.
async fn probe(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_to_end(&mut stream).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn a_draining_server_is_alive_but_not_ready_and_accepts_connections() {
    let server = with_shutdown_grace(Duration::from_millis(50)).await;
    let address = server.address.clone();
    let ready = r#"{"status":"ready","checks":[{"name":"running","ok":true}]}"#;
    assert_eq!(probe(&address, "/readyz").await, (200, ready.to_owned()));
    let mut idle = TcpStream::connect(&address).await.unwrap();
    server.server.begin_drain();

    assert_eq!(probe(&address, "/healthz").await, (200, r#"{"status":"ok"}"#.to_owned()));
    let stopping =
        r#"{"status":"not ready","checks":[{"name":"running","ok":false,"reason":"stopping"}]}"#.to_owned();
    assert_eq!(probe(&address, "/readyz").await, (503, stopping));
    // Old and new connections are served, and closed after their response.
    let mut new = TcpStream::connect(&address).await.unwrap();
    for stream in [&mut idle, &mut new] {
        stream.write_all(PING.as_bytes()).await.unwrap();
        let answer = read_to_end(stream).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 200") && answer.contains("connection: close"), "{answer}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_drained_server_closes_idle_connections_before_its_listener() {
    let server = with_shutdown_grace(Duration::from_secs(1)).await;
    let address = server.address.clone();
    let mut idle = TcpStream::connect(&address).await.unwrap();
    server.server.begin_drain();
    let closing = tokio::spawn(server.close());
    // While the idle connection is open, its client could connect again.
    let mut byte = [0];
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(probe(&address, "/healthz").await.0, 200);
    let idle_end = tokio::time::timeout(Duration::from_secs(10), idle.read(&mut byte)).await.unwrap();
    assert_eq!(idle_end.unwrap(), 0);
    closing.await.unwrap();
    assert!(TcpStream::connect(&address).await.is_err(), "the listener is closed in the end");
}

#[derive(Debug)]
struct FailingProbe;

impl ReadinessProbe for FailingProbe {
    fn check(&self) -> BoxFuture<'_, Vec<ReadinessCheck>> {
        let check = ReadinessCheck::failed("store", "unreachable").with_detail("no route to db.internal");
        Box::pin(std::future::ready(vec![check]))
    }
}

#[tokio::test]
async fn readiness_names_the_failed_check_and_gives_details_to_clients_with_a_token() {
    let mut builder = ServerBuilder::default().with_token("s3cret-token");
    builder.http.readiness = Some(std::sync::Arc::new(FailingProbe));
    let server = builder.build().await;
    let (status, body) = probe(&server.address, "/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains(r#"{"name":"store","ok":false,"reason":"unreachable"}"#), "{body}");
    let url = format!("http://{}/readyz", server.address);
    let with_token = reqwest::Client::new().get(url).bearer_auth("s3cret-token").send().await.unwrap();
    let body = with_token.text().await.unwrap();
    assert!(body.contains("no route to db.internal"), "{body}");
    assert_eq!(probe(&server.address, "/healthz").await.0, 200);
    server.close().await;
}

#[tokio::test]
async fn a_request_during_shutdown_is_the_last_on_its_connection() {
    let server = with_shutdown_grace(Duration::from_secs(8)).await;
    let address = server.address.clone();
    let mut unused = TcpStream::connect(&address).await.unwrap();
    let mut used = TcpStream::connect(&address).await.unwrap();
    used.write_all(PING.as_bytes()).await.unwrap();
    let mut first = vec![0; 4 << 10];
    let length = used.read(&mut first).await.unwrap();
    let first = String::from_utf8_lossy(&first[..length]).to_lowercase();
    assert!(first.starts_with("http/1.1 200") && !first.contains("connection: close"), "{first}");
    let began = Instant::now();
    let closing = tokio::spawn(server.close());
    // Until the listener is closed.
    while TcpStream::connect(&address).await.is_ok() && began.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for stream in [&mut unused, &mut used] {
        stream.write_all(PING.as_bytes()).await.unwrap();
        let answer = read_to_end(stream).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 200") && answer.contains("connection: close"), "{answer}");
    }
    closing.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(7), "the server does not wait for the whole grace");
}

#[tokio::test]
async fn connections_in_the_backlog_are_served() {
    let server = with_shutdown_grace(Duration::from_secs(8)).await;
    let address = server.address.clone();
    // The runtime has one thread and nothing here awaits, so the server cannot accept before it is told to stop.
    let mut streams: Vec<std::net::TcpStream> =
        (0..20).map(|_| std::net::TcpStream::connect(&address).unwrap()).collect();
    for stream in &mut streams {
        std::io::Write::write_all(stream, PING.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
    }
    let closing = tokio::spawn(server.close());
    for stream in streams {
        let answer = read_to_end(&mut TcpStream::from_std(stream).unwrap()).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 200") && answer.contains("connection: close"), "{answer}");
    }
    closing.await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_closes_after_the_shutdown_grace() {
    let server = with_shutdown_grace(Duration::from_millis(100)).await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let began = Instant::now();
    server.close().await;
    assert_eq!(read_to_end(&mut stream).await, "");
    assert!(began.elapsed() < Duration::from_secs(4));
}
