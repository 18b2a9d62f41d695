//! An MCP server over HTTP that can be stopped and started again at the same address.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinSet},
};

use crate::test_home::TestHome;

/// A server with the tools `sleep` and `respond`, and with a prompt whose content is not valid. Its sessions end when it is stopped.
pub(crate) struct HttpUpstream {
    address: SocketAddr,
    starts: usize,
    running_calls: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl HttpUpstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let running_calls = Arc::default();
        let task = spawn_server(listener, 1, &running_calls);
        Self { address, starts: 1, running_calls, task }
    }

    /// Closes all connections; further ones are refused.
    pub(crate) fn stop(&self) {
        self.task.abort();
    }

    /// Starts a stopped server again, without its sessions.
    pub(crate) async fn restart(&mut self) {
        self.starts += 1;
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.task = spawn_server(listener, self.starts, &self.running_calls);
    }

    pub(crate) fn running_calls(&self) -> usize {
        self.running_calls.load(Ordering::Relaxed)
    }

    /// A home whose settings name this server, after these lines.
    pub(crate) fn home(&self, settings: &str) -> TestHome {
        let home = TestHome::new();
        let text = format!("{settings}\n[servers.upstream]\nurl = \"http://{}/mcp\"\n", self.address);
        home.write("config/toolyard/toolyard.toml", &text);
        home
    }
}

impl Drop for HttpUpstream {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn_server(listener: TcpListener, start: usize, running_calls: &Arc<AtomicUsize>) -> AbortHandle {
    let running_calls = Arc::clone(running_calls);
    let accept = async move {
        // Dropped with this task, which closes the connections.
        let mut connections = JoinSet::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let running_calls = Arc::clone(&running_calls);
            let service = service_fn(move |request| respond(request, start, Arc::clone(&running_calls)));
            connections.spawn(async move {
                // A client may disconnect at any time.
                let _ =
                    server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::spawn(accept).abort_handle()
}

async fn respond(
    request: Request<Incoming>,
    start: usize,
    running_calls: Arc<AtomicUsize>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let session = request.headers().get("mcp-session-id").map(|id| id.as_bytes().to_vec());
    let is_post = request.method() == hyper::Method::POST;
    let body = request.into_body().collect().await?.to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
    let own_session = start.to_string();
    if !is_post {
        return Ok(status_response(405));
    }
    if session.is_some_and(|session| session != own_session.as_bytes()) {
        return Ok(status_response(404));
    }
    if message.get("id").is_none() {
        return Ok(status_response(202));
    }
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "prompts": {}},
            "serverInfo": {"name": "upstream", "version": "1"},
        }),
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": [tool("sleep"), tool("respond")]})
        }
        "prompts/list" => json!({"prompts": [{"name": "invalid"}]}),
        "prompts/get" => json!("words"),
        "tools/call" if params["name"] == "respond" => {
            let arguments = &params["arguments"];
            if let Some(status) = arguments["status"].as_u64() {
                let mut response = status_response(status.try_into().unwrap());
                if let Some(delay) = arguments["retry_after"].as_str() {
                    response.headers_mut().insert("retry-after", delay.parse().unwrap());
                }
                return Ok(response);
            }
            arguments["result"].clone()
        }
        "tools/call" => {
            running_calls.fetch_add(1, Ordering::Relaxed);
            let milliseconds = params["arguments"]["milliseconds"].as_u64().unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            running_calls.fetch_sub(1, Ordering::Relaxed);
            json!({"content": [{"type": "text", "text": "slept"}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return Ok(json_response(
                &own_session,
                &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            ));
        }
    };
    Ok(json_response(&own_session, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result})))
}

fn status_response(status: u16) -> Response<Full<Bytes>> {
    Response::builder().status(status).body(Full::default()).unwrap()
}

fn json_response(session: &str, message: &Value) -> Response<Full<Bytes>> {
    Response::builder()
        .header("content-type", "application/json")
        .header("mcp-session-id", session)
        .body(Full::from(message.to_string()))
        .unwrap()
}
