//! A server on a free port, with adjustable configuration.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{broadcast, oneshot},
    task::JoinHandle,
};
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::RpcError;
use toolyard_mcp_server::{
    Access, AccessRules, AccessToken, ContentCapabilities, ContentEvent, ContentKind, ContentRequest,
    ContentService, Endpoint, HttpConfig, McpServer, Readiness, ServeError, ServerConfig, SessionKeys,
    serve_http,
};

use crate::tools::TestTools;

pub(crate) const SESSION_KEY: [u8; 32] = [7; 32];

#[derive(Debug)]
pub(crate) struct TestServer {
    pub(crate) tools: Arc<TestTools>,
    pub(crate) content: Arc<TestContent>,
    pub(crate) address: String,
    pub(crate) server: Arc<McpServer>,
    stop: Option<oneshot::Sender<()>>,
    server_task: JoinHandle<Result<(), ServeError>>,
}

/// The configuration of a server.
#[derive(Debug)]
pub(crate) struct ServerBuilder {
    pub(crate) config: ServerConfig,
    pub(crate) http: HttpConfig,
    pub(crate) readiness: Option<Arc<dyn Readiness>>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        let config = ServerConfig::new("yard", "1.2.3", SessionKeys::new(SESSION_KEY, None).unwrap());
        let mut http = HttpConfig::new(Access::Open);
        http.drain_timeout = Duration::from_secs(5);
        http.shutdown_grace = Duration::from_millis(50);
        Self { config, http, readiness: None }
    }
}

impl ServerBuilder {
    pub(crate) fn with_token(self, token: &str) -> Self {
        self.http.access.replace(AccessRules::new(Access::Token(AccessToken::new(token))));
        self
    }

    pub(crate) fn with_keys(mut self, current: [u8; 32], former: Option<[u8; 32]>) -> Self {
        self.config.session_keys = SessionKeys::new(current, former).unwrap();
        self
    }

    /// The server without a listener.
    pub(crate) fn build_server(self) -> (Arc<McpServer>, Arc<TestTools>, Arc<TestContent>) {
        let (tools, content) = (Arc::new(TestTools::default()), Arc::new(TestContent::default()));
        let endpoint = Endpoint {
            tools: Arc::clone(&tools) as _,
            content: vec![Arc::clone(&content) as _],
            readiness: self.readiness,
            local_only: false,
        };
        let other = Endpoint::new(Arc::new(TestTools::default()));
        (Arc::new(McpServer::new(self.config, endpoint).with_endpoint("other", other)), tools, content)
    }

    pub(crate) async fn build(self) -> TestServer {
        let http = self.http.clone();
        let (server, tools, content) = self.build_server();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        let server_task = tokio::spawn(serve_http(Arc::clone(&server), listener, http, stopped));
        TestServer { tools, content, address, server, stop: Some(stop), server_task }
    }
}

impl TestServer {
    pub(crate) async fn new() -> Self {
        ServerBuilder::default().build().await
    }

    pub(crate) async fn close(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.server_task.await.unwrap().unwrap();
    }
}

/// Three prompts, one resource, and change events.
#[derive(Debug)]
pub(crate) struct TestContent {
    pub(crate) events: broadcast::Sender<ContentEvent>,
    /// Is part of every list and response, if set.
    pub(crate) text: Mutex<Option<String>>,
}

impl Default for TestContent {
    fn default() -> Self {
        Self { events: broadcast::Sender::new(16), text: Mutex::default() }
    }
}

impl ContentService for TestContent {
    fn capabilities(&self) -> ContentCapabilities {
        ContentCapabilities {
            prompts: true,
            resources: true,
            subscriptions: true,
            ..ContentCapabilities::default()
        }
    }

    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>> {
        let mut entries = match kind {
            ContentKind::Prompts => vec![json!({"name": "a"}), json!({"name": "b"}), json!({"name": "c"})],
            ContentKind::Resources => vec![json!({"uri": "test://one", "name": "one"})],
            _ => Vec::new(),
        };
        if let Some(text) = &*self.text.lock() {
            entries.push(json!({"name": text, "uri": "test://text", "description": text}));
        }
        Box::pin(std::future::ready(entries.iter().map(RawJson::from_value).collect()))
    }

    fn request<'a>(
        &'a self,
        request: ContentRequest<'a>,
    ) -> BoxFuture<'a, Option<Result<RawJson, RpcError>>> {
        Box::pin(async move {
            let params = request.params.to_value();
            if let Some(text) = self.text.lock().clone() {
                return Some(match params["uri"].as_str() {
                    Some("test://error") => {
                        let data = Some(RawJson::from(json!({"uri": text})));
                        Err(RpcError { code: -32002, message: text, data })
                    }
                    Some(uri) => Ok(RawJson::from(json!({"contents": [{"uri": uri, "text": text}]}))),
                    None => Ok(RawJson::from(json!({"messages": [{"role": "user", "content": text}]}))),
                });
            }
            match (request.method, params["name"].as_str(), params["uri"].as_str()) {
                ("prompts/get", Some("a"), _) => Some(Ok(RawJson::from(json!({"messages": []})))),
                ("resources/read", _, Some("test://one")) => {
                    Some(Ok(RawJson::from(json!({"contents": [{"uri": "test://one", "text": "one"}]}))))
                }
                ("resources/subscribe" | "resources/unsubscribe", _, Some("test://one")) => {
                    Some(Ok(RawJson::empty_object()))
                }
                ("resources/subscribe", _, Some("test://unchanging")) => {
                    let message = "the server does not support subscriptions".to_owned();
                    Some(Err(RpcError { code: -32601, message, data: None }))
                }
                _ => None,
            }
        })
    }

    fn events(&self) -> Option<broadcast::Receiver<ContentEvent>> {
        Some(self.events.subscribe())
    }
}
