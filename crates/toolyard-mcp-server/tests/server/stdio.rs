//! The same server over stdio.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    },
    sync::oneshot,
    task::JoinHandle,
};
use toolyard_mcp_server::{ServeError, serve_stdio};

use crate::{
    memory_cluster::MemoryCluster,
    test_server::ServerBuilder,
    tools::{TestTools, definitions},
};

/// A client at the other end of a pipe.
struct Pipe {
    tools: Arc<TestTools>,
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server_task: JoinHandle<Result<(), ServeError>>,
    _stop: oneshot::Sender<()>,
}

impl Pipe {
    fn open() -> Self {
        Self::open_with(ServerBuilder::default())
    }

    fn open_with(builder: ServerBuilder) -> Self {
        let (server, tools, _) = builder.build_server();
        let (client_end, server_end) = duplex(64 << 10);
        let (input, output) = split(server_end);
        let (stop, stopped) = oneshot::channel();
        let server_task = tokio::spawn(serve_stdio(server, input, output, async {
            let _ = stopped.await;
        }));
        let (read, write) = split(client_end);
        Self { tools, write, read: BufReader::new(read).lines(), server_task, _stop: stop }
    }

    async fn send(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(5), self.read.next_line()).await;
        serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn request_modern(&mut self, id: u64, method: &str, mut params: Value) {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        self.request(id, method, params).await;
    }

    async fn initialize(&mut self) {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "tester", "version": "1"}});
        self.request(0, "initialize", params).await;
        assert_eq!(self.receive().await["result"]["protocolVersion"], "2025-06-18");
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }
}

#[tokio::test]
async fn all_revisions_work_over_one_pipe() {
    let mut pipe = Pipe::open();
    pipe.request_modern(1, "server/discover", json!({})).await;
    assert_eq!(pipe.receive().await["result"]["supportedVersions"][0], "2026-07-28");
    pipe.initialize().await;
    pipe.request(2, "tools/call", json!({"name": "pretty"})).await;
    assert_eq!(pipe.receive().await["result"]["content"][0]["text"], "a\nb");
    pipe.request_modern(3, "tools/call", json!({"name": "echo", "arguments": {"a": 1}})).await;
    assert_eq!(pipe.receive().await["result"]["resultType"], "complete");
    pipe.request_modern(4, "ping", json!({})).await;
    assert_eq!(pipe.receive().await["error"]["code"], -32601);
}

#[tokio::test]
async fn calls_run_concurrently_and_send_notifications() {
    let mut pipe = Pipe::open();
    pipe.initialize().await;
    pipe.request(1, "tools/call", json!({"name": "slow"})).await;
    pipe.tools.wait_for_started(1).await;
    pipe.request(2, "tools/call", json!({"name": "progress", "_meta": {"progressToken": "t"}})).await;
    assert_eq!(pipe.receive().await["params"]["progressToken"], "t");
    assert_eq!(pipe.receive().await["params"]["progress"], 2.0);
    assert_eq!(pipe.receive().await["id"], 2);
    pipe.tools.release.notify_one();
    assert_eq!(pipe.receive().await["id"], 1);
}

#[tokio::test]
async fn input_requests_work_in_all_revisions() {
    check_input_requests(Pipe::open()).await;
    let mut builder = ServerBuilder::default();
    builder.config.peers = Some(Arc::<MemoryCluster>::default().peers(7));
    check_input_requests(Pipe::open_with(builder)).await;
}

async fn check_input_requests(mut pipe: Pipe) {
    pipe.initialize().await;
    pipe.request(1, "tools/call", json!({"name": "ask"})).await;
    let input_request = pipe.receive().await;
    assert_eq!(input_request["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"value": "Ann"}});
    pipe.send(json!({"jsonrpc": "2.0", "id": input_request["id"], "result": answer})).await;
    assert_eq!(pipe.receive().await["result"]["content"][0]["text"], "Ann");

    pipe.request_modern(2, "tools/call", json!({"name": "ask", "arguments": {}})).await;
    let suspended = pipe.receive().await;
    assert_eq!(suspended["result"]["resultType"], "input_required");
    let state = &suspended["result"]["requestState"];
    let params =
        json!({"name": "ask", "arguments": {}, "requestState": state, "inputResponses": {"name": answer}});
    pipe.request_modern(3, "tools/call", params).await;
    let done = pipe.receive().await;
    assert_eq!((&done["id"], &done["result"]["content"][0]["text"]), (&json!(3), &json!("Ann")));
}

#[tokio::test]
async fn cancellation_and_notifications_work_in_all_revisions() {
    let mut pipe = Pipe::open();
    pipe.request_modern(1, "tools/call", json!({"name": "slow"})).await;
    pipe.tools.wait_for_started(1).await;
    pipe.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    while pipe.tools.dropped.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    pipe.request_modern(2, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
        .await;
    assert_eq!(pipe.receive().await["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 2);
    pipe.tools.offer(definitions(9));
    assert_eq!(pipe.receive().await["method"], "notifications/tools/list_changed");
    pipe.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}))
        .await;
    pipe.initialize().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    pipe.tools.offer(definitions(10));
    let notification = pipe.receive().await;
    assert_eq!(
        (&notification["method"], notification.get("params")),
        (&json!("notifications/tools/list_changed"), None)
    );
}

#[tokio::test]
async fn garbage_is_rejected_and_the_next_message_is_read() {
    let mut pipe = Pipe::open();
    for (garbage, code) in [
        ("hello", -32700),
        ("{\"a\":", -32700),
        ("{}", -32600),
        ("[]", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
    ] {
        pipe.write.write_all(format!("{garbage}\n").as_bytes()).await.unwrap();
        let refused = pipe.receive().await;
        assert_eq!(refused["error"]["code"], code, "{garbage}");
        assert_eq!(refused.get("id"), None);
    }
    pipe.request(1, "ping", json!({})).await;
    assert_eq!(pipe.receive().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
}

#[tokio::test]
async fn the_end_of_input_ends_the_server_after_its_responses() {
    let mut pipe = Pipe::open();
    pipe.request(1, "tools/call", json!({"name": "progress"})).await;
    pipe.write.shutdown().await.unwrap();
    assert_eq!(pipe.receive().await["result"]["content"][0]["text"], "done");
    assert!(pipe.read.next_line().await.unwrap().is_none());
    pipe.server_task.await.unwrap().unwrap();
}
