//! A small client for legacy and modern requests.

use std::time::Duration;

use futures_util::{Stream, StreamExt};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

pub(crate) const MODERN_REVISION: &str = "2026-07-28";
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    session: Option<String>,
    version: String,
    token: Option<String>,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    /// One message, or one for each event.
    pub(crate) messages: Vec<Value>,
}

impl TestResponse {
    /// The response to the request.
    pub(crate) fn last(&self) -> &Value {
        self.messages.last().unwrap()
    }

    pub(crate) fn result(&self) -> &Value {
        assert!(self.last()["result"].is_object(), "{self:?}");
        &self.last()["result"]
    }

    pub(crate) fn text(&self) -> &str {
        self.result()["content"][0]["text"].as_str().unwrap()
    }

    pub(crate) fn code(&self) -> i64 {
        self.last()["error"]["code"].as_i64().unwrap_or_else(|| panic!("{self:?}"))
    }
}

impl Client {
    pub(crate) fn new(address: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build().unwrap();
        let (url, version) = (format!("http://{address}/mcp"), "2025-11-25".to_owned());
        Self { http, url, session: None, version, token: None }
    }

    pub(crate) fn at_profile(mut self, profile: &str) -> Self {
        self.url = format!("{}/{profile}", self.url);
        self
    }

    /// The same client, connected to another server.
    pub(crate) fn at_address(&self, address: &str) -> Self {
        Self { url: format!("http://{address}/mcp"), ..self.clone() }
    }

    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub(crate) fn with_session(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    pub(crate) fn session(&self) -> String {
        self.session.clone().unwrap()
    }

    /// Initializes a legacy session.
    pub(crate) async fn initialize(self, version: &str, capabilities: Value) -> Self {
        self.try_initialize(version, capabilities).await.unwrap()
    }

    pub(crate) async fn try_initialize(
        mut self,
        version: &str,
        capabilities: Value,
    ) -> Result<Self, StatusCode> {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "tester", "version": "1"}
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = self.post().json(&body).send().await.unwrap();
        if !response.status().is_success() {
            return Err(response.status());
        }
        self.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        let result: Value = response.json().await.unwrap();
        self.version = result["result"]["protocolVersion"].as_str().unwrap().to_owned();
        self.notify("notifications/initialized", json!({})).await;
        Ok(self)
    }

    pub(crate) fn request(&self, method: reqwest::Method) -> RequestBuilder {
        let mut request = self.http.request(method, &self.url);
        if let Some(session) = &self.session {
            request = request.header("Mcp-Session-Id", session).header("MCP-Protocol-Version", &self.version);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request
    }

    pub(crate) fn post(&self) -> RequestBuilder {
        self.request(reqwest::Method::POST).header("Accept", "application/json, text/event-stream")
    }

    /// Makes a legacy request and reads the response.
    pub(crate) async fn request_legacy(&self, id: u64, method: &str, params: Value) -> TestResponse {
        read(self.send_legacy(id, method, params).await).await
    }

    pub(crate) async fn send_legacy(&self, id: u64, method: &str, params: Value) -> Response {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.post().json(&body).send().await.unwrap()
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) -> StatusCode {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.post().json(&body).send().await.unwrap().status()
    }

    /// Responds to a request of the server.
    pub(crate) async fn reply(&self, id: &Value, result: Value) -> StatusCode {
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.post().json(&body).send().await.unwrap().status()
    }

    /// Makes a modern request of a client with these capabilities and reads the response.
    pub(crate) async fn request_modern(
        &self,
        id: u64,
        method: &str,
        params: Value,
        capabilities: Value,
    ) -> TestResponse {
        read(self.send_modern(id, method, params, capabilities).await).await
    }

    pub(crate) async fn send_modern(
        &self,
        id: u64,
        method: &str,
        mut params: Value,
        capabilities: Value,
    ) -> Response {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        for (key, value) in meta.as_object().unwrap() {
            params["_meta"][key] = value.clone();
        }
        let stateless = Self { session: None, ..self.clone() };
        let mut request =
            stateless.post().header("MCP-Protocol-Version", MODERN_REVISION).header("Mcp-Method", method);
        if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
            request = request.header("Mcp-Name", name);
        }
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        request.json(&body).send().await.unwrap()
    }

    /// Makes a modern tool call without arguments.
    pub(crate) async fn call(&self, id: u64, tool: &str, capabilities: Value) -> TestResponse {
        self.request_modern(id, "tools/call", json!({"name": tool, "arguments": {}}), capabilities).await
    }
}

/// Reads a response to its end.
pub(crate) async fn read(response: Response) -> TestResponse {
    let status = response.status();
    let content_type = response
        .headers()
        .get("content-type")
        .map_or("", |content_type| content_type.to_str().unwrap())
        .to_owned();
    let text = response.text().await.unwrap();
    let messages = match content_type.as_str() {
        "text/event-stream" => events_in(&text),
        _ if text.is_empty() => Vec::new(),
        _ => vec![serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))],
    };
    TestResponse { status, content_type, messages }
}

fn events_in(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The messages of a stream, one by one.
pub(crate) fn stream(response: Response) -> impl Stream<Item = Value> + Unpin {
    assert_eq!(response.headers()["content-type"], "text/event-stream", "{response:?}");
    let mut buffered = String::new();
    let messages = response.bytes_stream().map(move |chunk| {
        buffered.push_str(std::str::from_utf8(&chunk.unwrap_or_default()).unwrap());
        let whole = buffered.rfind("\n\n").map_or(0, |end| end + 2);
        let events: String = buffered.drain(..whole).collect();
        futures_util::stream::iter(events_in(&events))
    });
    messages.flatten().boxed()
}

/// The next message, within a timeout.
pub(crate) async fn next(stream: &mut (impl Stream<Item = Value> + Unpin)) -> Value {
    tokio::time::timeout(TIMEOUT, stream.next()).await.unwrap().unwrap()
}

/// Asserts that no message arrives for a while.
pub(crate) async fn assert_silent(stream: &mut (impl Stream<Item = Value> + Unpin)) {
    let message = tokio::time::timeout(Duration::from_millis(150), stream.next()).await;
    assert!(message.is_err(), "{message:?}");
}
