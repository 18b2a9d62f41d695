//! The road that nearly every call takes: no stream, no task, no waiting for the network.

use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::house::House;

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

async fn answer(stream: &mut TcpStream) -> String {
    let mut answer = vec![0; 64 << 10];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8(answer[..length].to_vec()).unwrap()
}

#[tokio::test]
async fn a_call_is_answered_in_its_connections_own_task_in_one_piece() {
    let house = House::new().await;
    let mut stream = TcpStream::connect(&house.address).await.unwrap();
    let mut alive = Vec::new();
    for id in 0..100 {
        stream.write_all(call(id).as_bytes()).await.unwrap();
        // One read is enough: head and body were written together.
        let answer = answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("content-type: application/json\r\n") && answer.contains("content-length: "));
        assert!(
            answer.ends_with("\"x-kept\":1.0}}") && answer.contains(&format!("\"id\":{id},")),
            "{answer}"
        );
        alive.push(house.tools.tasks.load(Ordering::SeqCst));
    }
    // The server, and this connection; nothing was spawned for a call.
    assert!(alive.iter().all(|alive| *alive == 2), "{alive:?}");
    drop(stream);
    house.close().await;
}
