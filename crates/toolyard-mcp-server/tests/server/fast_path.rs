//! The hot path: no stream, no task and no extra write.

use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::test_server::TestServer;

fn call(id: usize) -> String {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo",
        "arguments": {"n": id}, "_meta": {"progressToken": id,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}})
    .to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn read_response(stream: &mut TcpStream) -> String {
    let mut answer = vec![0; 64 << 10];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8(answer[..length].to_vec()).unwrap()
}

#[tokio::test]
async fn a_call_runs_in_the_task_of_its_connection() {
    let server = TestServer::new().await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let mut task_counts = Vec::new();
    for id in 0..100 {
        stream.write_all(call(id).as_bytes()).await.unwrap();
        // One read is enough: head and body are written together.
        let answer = read_response(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("content-type: application/json\r\n") && answer.contains("content-length: "));
        assert!(
            answer.ends_with("\"x-kept\":1.0}}") && answer.contains(&format!("\"id\":{id},")),
            "{answer}"
        );
        task_counts.push(server.tools.tasks.load(Ordering::SeqCst));
    }
    // The server and this connection; no task was spawned for a call.
    assert!(task_counts.iter().all(|count| *count == 2), "{task_counts:?}");
    drop(stream);
    server.close().await;
}
