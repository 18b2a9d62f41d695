//! A small HTTP server for tests that can misbehave in every way a real one can.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use toolyard_core::BoxFuture;

use toolyard_mcp::WireLimits;

use crate::transport::{
    error::TransportError,
    http::{client::http_client, streamable::StreamableHttp, target::HttpTarget},
    message::{OutgoingMessage, Transport},
    requests::pending::{PendingRequests, ResponseOutcome, ServerMessage},
};

/// A request that the server received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn id(&self) -> u64 {
        self.json()["id"].as_u64().unwrap()
    }

    /// The JSON-RPC response to this request.
    pub(crate) fn response(&self, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.id(), "result": result}).to_string()
    }
}

/// The connection a request came on.
#[derive(Debug)]
pub(crate) struct Reply {
    stream: TcpStream,
    keeps_alive: bool,
}

impl Reply {
    /// Sends a complete response.
    pub(crate) async fn full(&mut self, status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let length = body.len().to_string();
        self.head(status, &[headers, &[("Content-Length", &length)]].concat()).await;
        self.raw(body).await;
        self.keeps_alive = true;
    }

    pub(crate) async fn json(&mut self, body: impl AsRef<[u8]>) {
        self.full(200, &[("Content-Type", "application/json")], body).await;
    }

    pub(crate) async fn head(&mut self, status: u16, headers: &[(&str, &str)]) {
        let mut head = format!("HTTP/1.1 {status} Status\r\n");
        for (name, value) in headers {
            head.extend([*name, ": ", *value, "\r\n"]);
        }
        self.raw(head + "\r\n").await;
    }

    /// Sends the head of a stream that ends with the connection.
    pub(crate) async fn events(&mut self) {
        self.head(200, &[("Content-Type", "text/event-stream"), ("Connection", "close")]).await;
    }

    pub(crate) async fn event(&mut self, data: impl AsRef<str>) {
        self.raw(format!("event: message\ndata: {}\n\n", data.as_ref())).await;
    }

    pub(crate) async fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Writes the same bytes repeatedly until the client disconnects; returns how many were sent.
    pub(crate) async fn flood(&mut self, piece: &[u8]) -> usize {
        let mut written = 0;
        while self.stream.write_all(piece).await.is_ok() {
            written += piece.len();
        }
        written
    }

    /// Waits until the client disconnects.
    pub(crate) async fn disconnected(&mut self) {
        let mut rest = [0; 1024];
        while let Ok(1..) = self.stream.read(&mut rest).await {}
    }

    /// Expects another request on this connection.
    pub(crate) fn keep_alive(&mut self) {
        self.keeps_alive = true;
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        let _ = self.stream.set_zero_linger();
    }
}

type Handler = dyn Fn(ReceivedRequest, Reply) -> BoxFuture<'static, Option<Reply>> + Send + Sync;

/// A server on a free port, until it is dropped.
pub(crate) struct TestServer {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestServer {
    /// Handles each request with `handler`, which returns the connection if it can be reused.
    pub(crate) async fn start<F, R>(handler: F) -> Self
    where
        F: Fn(ReceivedRequest, Reply) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Reply>> + Send + 'static,
    {
        let handler: Arc<Handler> = Arc::new(move |request, reply| Box::pin(handler(request, reply)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (shared, count) = (Arc::clone(&received), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&handler), Arc::clone(&shared)));
            }
        });
        Self { url, received, connections, task }
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(stream: TcpStream, handler: Arc<Handler>, received: Arc<Mutex<Vec<ReceivedRequest>>>) {
    let mut reply = Reply { stream, keeps_alive: false };
    while let Ok(request) = read_request(&mut reply.stream).await {
        received.lock().push(request.clone());
        reply.keeps_alive = false;
        match handler(request, reply).await {
            Some(reusable) if reusable.keeps_alive => reply = reusable,
            _ => return,
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> io::Result<ReceivedRequest> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(ReceivedRequest { method, path, headers, body })
}

/// A connection to a test server.
pub(crate) struct TestClient<T> {
    pub(crate) transport: T,
    pub(crate) requests: Arc<PendingRequests>,
    pub(crate) messages: mpsc::Receiver<ServerMessage>,
}

impl TestClient<StreamableHttp> {
    pub(crate) fn new(url: &str) -> Self {
        Self::with(HttpTarget::new(url, []).unwrap(), WireLimits::default())
    }

    pub(crate) fn with(target: HttpTarget, limits: WireLimits) -> Self {
        let (requests, messages) = PendingRequests::new(limits.in_flight);
        let requests = Arc::new(requests);
        let transport = StreamableHttp::new(target, Arc::clone(&requests), limits, http_client().unwrap());
        Self { transport, requests, messages }
    }
}

impl<T: Transport> TestClient<T> {
    /// Makes a request and waits for the response, as long as a test may take.
    pub(crate) async fn request(&self, method: &'static str) -> ResponseOutcome {
        let response = async {
            let mut pending = self.requests.register()?;
            let id = pending.id;
            pending.response_to(self.transport.send(request(id, method))).await
        };
        tokio::time::timeout(Duration::from_secs(20), response).await.expect("a response in time")
    }

    pub(crate) async fn result(&self, method: &'static str) -> Value {
        serde_json::from_str(self.request(method).await.unwrap().unwrap().get()).unwrap()
    }

    pub(crate) async fn error(&self, method: &'static str) -> TransportError {
        self.request(method).await.unwrap_err()
    }
}

pub(crate) fn request(id: u64, method: &'static str) -> OutgoingMessage {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).to_string().into_bytes();
    OutgoingMessage { id: Some(id), method, body, headers: Vec::new(), identity: None }
}

pub(crate) fn notification(method: &'static str) -> OutgoingMessage {
    let body = json!({"jsonrpc": "2.0", "method": method}).to_string().into_bytes();
    OutgoingMessage { id: None, method, body, headers: Vec::new(), identity: None }
}

/// The peak memory of this process in bytes; nextest runs each test in a process of its own.
pub(crate) fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or(0) << 10
}
