//! Shutdown: in-flight calls end, requests on their way are answered, idle connections close.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

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

#[tokio::test]
async fn the_health_check_reports_shutdown() {
    let server = with_shutdown_grace(Duration::from_secs(8)).await;
    // The health check accepts every Host.
    let health = "GET /healthz HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n";
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(health.as_bytes()).await.unwrap();
    let mut first = vec![0; 4 << 10];
    let length = stream.read(&mut first).await.unwrap();
    let first = String::from_utf8_lossy(&first[..length]).into_owned();
    assert!(first.starts_with("HTTP/1.1 200") && first.ends_with(r#"{"status":"ok"}"#), "{first}");
    let closing = tokio::spawn(server.close());
    tokio::time::sleep(Duration::from_millis(200)).await;
    stream.write_all(health.as_bytes()).await.unwrap();
    let last = read_to_end(&mut stream).await;
    assert!(last.starts_with("HTTP/1.1 503") && last.ends_with(r#"{"status":"stopping"}"#), "{last}");
    closing.await.unwrap();
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
