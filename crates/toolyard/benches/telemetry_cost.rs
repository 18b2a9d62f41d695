//! A program for `just telemetry-cost`: calls a tool of an upstream server through the gateway, with and without telemetry.
//!
//! `telemetry_cost MODE CALLS` with MODE `off` (no telemetry), `metrics` (as `toolyard serve` counts by default), `unsampled` (and
//! traces that are not sampled) or `exported` (and all traces exported). `untraced` is `exported` with a client that sends no
//! `traceparent`. The upstream server and the receiver
//! of traces are other processes (`telemetry_cost upstream`, `telemetry_cost receiver`), so that callgrind does not count them.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a program for measurements stops at the first problem"
)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader as AsyncBufReader, duplex, split};
use toolyard::Toolyard;
use toolyard_mcp_client::config::{McpServerConfig, TransportConfig};
use toolyard_mcp_server::{ServerConfig, SessionKeys, serve_stdio};
use toolyard_telemetry::{
    TelemetryBuilder,
    metrics::Metrics,
    traces::{Sampler, TraceConfig, Traces},
};

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED_TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// As in the program `toolyard`: allocators differ in the instructions they take.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    // `cargo bench` adds arguments of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["upstream"] => upstream(),
        ["receiver"] => receiver(),
        [mode, calls] => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(call_repeatedly(mode, calls.parse().unwrap()));
        }
        _ => println!("usage: telemetry_cost off|metrics|unsampled|exported|untraced CALLS"),
    }
}

async fn call_repeatedly(mode: &str, calls: usize) {
    let receiver = matches!(mode, "unsampled" | "exported" | "untraced").then(Receiver::start);
    let traces = receiver.as_ref().map(|receiver| {
        let mut config = TraceConfig::new(&receiver.endpoint).unwrap();
        if mode == "unsampled" {
            config.sampler = Sampler::parent_based(0.0);
        }
        Traces::start(config).unwrap()
    });
    let this = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let transport = TransportConfig::Stdio {
        command: this,
        args: vec!["upstream".to_owned()],
        env: std::collections::BTreeMap::default(),
        inherit: Vec::new(),
        cwd: None,
    };
    let config = McpServerConfig { trusted: true, ..McpServerConfig::new("upstream", transport) };
    let mut builder = Toolyard::builder().server(config).environment(std::env::vars());
    let mut telemetry = TelemetryBuilder::default();
    if mode != "off" {
        telemetry = telemetry.observe(Arc::new(Metrics::default()));
    }
    if let Some(traces) = &traces {
        telemetry = telemetry.traces(Arc::clone(traces) as _);
    }
    if let Some(telemetry) = telemetry.build() {
        builder = builder.telemetry(telemetry);
    }
    let toolyard = builder.build().await.unwrap();
    let config = ServerConfig::new("bench", "1", SessionKeys::random().unwrap());
    let server = Arc::new(toolyard.gateway_config().build(config));
    let (client, served) = duplex(1 << 20);
    let (input, output) = split(served);
    let serving = tokio::spawn(serve_stdio(server, input, output, std::future::pending()));
    let (read, mut write) = split(client);
    let mut lines = AsyncBufReader::new(read).lines();
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    });
    // A client that is traced and sampled, or traced and not sampled.
    match mode {
        "unsampled" => meta["traceparent"] = json!(UNSAMPLED_TRACEPARENT),
        "untraced" => {}
        _ => meta["traceparent"] = json!(TRACEPARENT),
    }
    let mut request = async |id: usize, method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        lines.next_line().await.unwrap().unwrap()
    };
    // Starts the upstream server.
    request(0, "tools/list", json!({})).await;
    for id in 0..calls {
        let answer = request(id, "tools/call", json!({"name": "echo", "arguments": {"text": "hello"}})).await;
        assert!(answer.contains("hello"), "{answer}");
    }
    if let Some(traces) = traces {
        traces.shut_down(Duration::from_secs(10)).await;
    }
    serving.abort();
    toolyard.close().await.unwrap();
}

/// A process that accepts exports.
struct Receiver {
    process: Child,
    endpoint: String,
}

impl Receiver {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut process = command.arg("receiver").stdout(Stdio::piped()).spawn().unwrap();
        let mut endpoint = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut endpoint).unwrap();
        Self { process, endpoint: endpoint.trim().to_owned() }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn receiver() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || accept_exports(stream));
    }
}

fn accept_exports(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut length, mut line) = (0_u64, String::new());
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let body = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap_or(0);
        if body == 0 || stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// An MCP server of revision 2026-07-28 with the tool `echo`.
fn upstream() {
    for line in std::io::stdin().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = request.get("id") else { continue };
        let result = match request["method"].as_str().unwrap() {
            "server/discover" => {
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"})
            }
            "tools/list" => json!({
                "tools": [{"name": "echo", "description": "Echo a text", "annotations": {"readOnlyHint": true},
                    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}],
                "ttlMs": 60_000, "cacheScope": "public", "resultType": "complete",
            }),
            _ => json!({
                "content": [{"type": "text", "text": request["params"]["arguments"]["text"]}], "resultType": "complete",
            }),
        };
        println!("{}", json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}
