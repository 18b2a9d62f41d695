//! A client of the legacy or modern revision family on one connection. It does as little work as possible and checks every response.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::BenchError;

/// The address of a server, and the revision family to use.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) is_modern: bool,
}

impl Target {
    pub(crate) fn new(url: &str, is_modern: bool) -> Self {
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        Self { host: host.to_owned(), path: format!("/{path}"), is_modern }
    }

    fn version(&self) -> &'static str {
        if self.is_modern { "2026-07-28" } else { "2025-11-25" }
    }
}

/// A connection with a session, where there are sessions.
pub(crate) struct Client {
    target: Target,
    sender: http1::SendRequest<Full<Bytes>>,
    session: Option<String>,
    next_id: u64,
}

impl Client {
    pub(crate) async fn open(target: &Target) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(&target.host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut client = Self { target: target.clone(), sender, session: None, next_id: 1 };
        if !target.is_modern {
            let initialize_params = json!({"protocolVersion": target.version(), "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"}});
            client.send_request("initialize", initialize_params).await?;
            let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            client.post(&message, "notifications/initialized", None).await?;
        }
        Ok(client)
    }

    /// Calls `echo` and checks that the response is the text that was sent.
    pub(crate) async fn echo(&mut self, text: &str) -> Result<(), BenchError> {
        let params = json!({"name": "echo", "arguments": {"text": text}});
        let (result, _) = self.send_request("tools/call", params).await?;
        match result["content"][0]["text"].as_str() {
            Some(answer) if answer == text => Ok(()),
            _ => Err(format!("wrong answer: {}", truncated(&result.to_string())).into()),
        }
    }

    /// Lists all tools. Returns their number and the bytes of every page.
    pub(crate) async fn list(&mut self) -> Result<(usize, Vec<Bytes>), BenchError> {
        let (mut count, mut cursor, mut pages) = (0, None::<Value>, Vec::new());
        loop {
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let (mut result, bytes) = self.send_request("tools/list", params).await?;
            count += result["tools"].as_array().map_or(0, Vec::len);
            cursor = result.get_mut("nextCursor").map(Value::take).filter(|cursor| !cursor.is_null());
            pages.push(bytes);
            if cursor.is_none() {
                return Ok((count, pages));
            }
        }
    }

    async fn send_request(&mut self, method: &str, mut params: Value) -> Result<(Value, Bytes), BenchError> {
        let id = self.next_id;
        self.next_id += 1;
        if self.target.is_modern {
            params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": self.target.version(),
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}});
        }
        let name = params["name"].as_str().map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let bytes = self.post(&message, method, name.as_deref()).await?;
        let text = std::str::from_utf8(&bytes)?;
        // A response as server-sent events has its data on one line here.
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap_or(text);
        let mut answer: Value = serde_json::from_str(data.trim())?;
        match answer.get_mut("result") {
            Some(result) => Ok((result.take(), bytes)),
            None => Err(format!("no result: {}", truncated(text)).into()),
        }
    }

    async fn post(&mut self, message: &Value, method: &str, name: Option<&str>) -> Result<Bytes, BenchError> {
        self.sender.ready().await?;
        let mut request = Request::post(&self.target.path)
            .header("host", &self.target.host)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if self.target.is_modern {
            request = request.header("mcp-method", method);
            if let Some(name) = name {
                request = request.header("mcp-name", name);
            }
        }
        if method != "initialize" {
            request = request.header("mcp-protocol-version", self.target.version());
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let body = Full::new(Bytes::from(serde_json::to_vec(message)?));
        let response = self.sender.send_request(request.body(body)?).await?;
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = session.to_str().ok().map(str::to_owned);
        }
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        if status.is_success() {
            Ok(bytes)
        } else {
            Err(format!("status {status}: {}", truncated(&String::from_utf8_lossy(&bytes))).into())
        }
    }
}

fn truncated(text: &str) -> String {
    text.chars().take(160).collect()
}
