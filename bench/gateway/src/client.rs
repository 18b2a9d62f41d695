//! One client of the legacy or the modern era on one connection: as little work as possible, every answer checked.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::Failed;

/// Where a server is, and in which era it is spoken to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) modern: bool,
}

impl Target {
    pub(crate) fn new(url: &str, modern: bool) -> Self {
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        Self { host: host.to_owned(), path: format!("/{path}"), modern }
    }

    fn version(&self) -> &'static str {
        if self.modern { "2026-07-28" } else { "2025-11-25" }
    }
}

/// A connection with a session, where there are sessions.
pub(crate) struct Client {
    target: Target,
    sender: http1::SendRequest<Full<Bytes>>,
    session: Option<String>,
    next: u64,
}

impl Client {
    pub(crate) async fn open(target: &Target) -> Result<Self, Failed> {
        let stream = TcpStream::connect(&target.host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut client = Self { target: target.clone(), sender, session: None, next: 1 };
        if !target.modern {
            let about = json!({"protocolVersion": target.version(), "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"}});
            client.ask("initialize", about).await?;
            let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            client.post(&message, "notifications/initialized", None).await?;
        }
        Ok(client)
    }

    /// Calls `echo` and makes sure that the answer is the text that was sent.
    pub(crate) async fn echo(&mut self, text: &str) -> Result<(), Failed> {
        let params = json!({"name": "echo", "arguments": {"text": text}});
        let (result, _) = self.ask("tools/call", params).await?;
        match result["content"][0]["text"].as_str() {
            Some(answer) if answer == text => Ok(()),
            _ => Err(format!("wrong answer: {}", short(&result.to_string())).into()),
        }
    }

    /// All tools: how many, and the bytes of every page.
    pub(crate) async fn list(&mut self) -> Result<(usize, Vec<Bytes>), Failed> {
        let (mut count, mut cursor, mut pages) = (0, None::<Value>, Vec::new());
        loop {
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let (mut result, bytes) = self.ask("tools/list", params).await?;
            count += result["tools"].as_array().map_or(0, Vec::len);
            cursor = result.get_mut("nextCursor").map(Value::take).filter(|cursor| !cursor.is_null());
            pages.push(bytes);
            if cursor.is_none() {
                return Ok((count, pages));
            }
        }
    }

    async fn ask(&mut self, method: &str, mut params: Value) -> Result<(Value, Bytes), Failed> {
        let id = self.next;
        self.next += 1;
        if self.target.modern {
            params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": self.target.version(),
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}});
        }
        let name = params["name"].as_str().map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let bytes = self.post(&message, method, name.as_deref()).await?;
        let text = std::str::from_utf8(&bytes)?;
        // An answer as events has its data on one line here.
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap_or(text);
        let mut answer: Value = serde_json::from_str(data.trim())?;
        match answer.get_mut("result") {
            Some(result) => Ok((result.take(), bytes)),
            None => Err(format!("no result: {}", short(text)).into()),
        }
    }

    async fn post(&mut self, message: &Value, method: &str, name: Option<&str>) -> Result<Bytes, Failed> {
        self.sender.ready().await?;
        let mut request = Request::post(&self.target.path)
            .header("host", &self.target.host)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if self.target.modern {
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
            Err(format!("status {status}: {}", short(&String::from_utf8_lossy(&bytes))).into())
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(160).collect()
}
