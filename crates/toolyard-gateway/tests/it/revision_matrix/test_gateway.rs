//! [`TestGateway`]: a gateway over HTTP with one real server, and clients of the official Python SDK.

use std::{process::Stdio, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{net::TcpListener, process::Command, sync::oneshot, task::JoinHandle, time::timeout};
use toolyard_core::{RevisionFamily, SourceId, SourceInfo, Tool};
use toolyard_gateway::{HubService, ServerContentBridge};
use toolyard_hub::{HubConfig, Profile, ToolHub};
use toolyard_mcp_client::{McpManager, ServerCache, ToolRegistrar, config::McpServerConfig};
use toolyard_mcp_server::{
    Access, Endpoint, HttpConfig, McpServer, Readiness as _, ServeError, ServerConfig, SessionKeys,
    serve_http,
};

use crate::support::{
    case::ServerCase,
    installed::installed_path,
    test_manager::{SERVER_ID, TEST_TIMEOUT, new_manager},
    test_server::TestServer,
};

/// A gateway with one server.
pub(crate) struct TestGateway {
    pub(crate) hub: Arc<ToolHub>,
    address: String,
    pub(crate) manager: Arc<McpManager>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
    pub(crate) test_server: TestServer,
}

/// Registers the tools of servers in a hub.
pub(super) struct HubRegistrar(pub(super) Arc<ToolHub>);

impl ToolRegistrar for HubRegistrar {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.register(source, tools);
    }

    fn remove(&self, source: &SourceId) {
        self.0.remove(source);
    }
}

impl TestGateway {
    pub(crate) async fn start(case: ServerCase) -> Self {
        Self::with_profile(case, Profile::default()).await
    }

    pub(crate) async fn with_profile(case: ServerCase, profile: Profile) -> Self {
        Self::with_settings(case, profile, |_| {}).await
    }

    pub(crate) async fn with_settings(
        case: ServerCase,
        profile: Profile,
        change: impl FnOnce(&mut McpServerConfig),
    ) -> Self {
        let test_server = TestServer::open(case).await;
        let hub = Arc::new(ToolHub::new(HubConfig::default()));
        let registrar = Arc::new(HubRegistrar(Arc::clone(&hub)));
        let memory = ServerCache::in_memory();
        let manager = Arc::new(new_manager(test_server.path(), memory, registrar));
        let mut config = test_server.config();
        change(&mut config);
        manager.apply(vec![config]).await.unwrap();
        let bridge = Arc::new(ServerContentBridge::new(Arc::clone(&manager), |_| true, None));
        bridge.settled().await;
        assert_eq!(manager.connect(SERVER_ID).await.unwrap().revision_family(), case.family);
        let tools = HubService::new(Arc::clone(&hub), profile).with_instructions_of(Arc::clone(&manager));
        let tools = Arc::new(tools);
        let (content, readiness) = (vec![Arc::clone(&bridge) as _], Some(bridge as _));
        let config = ServerConfig::new("gateway", "1", SessionKeys::new([7; 32], None).unwrap());
        let server =
            Arc::new(McpServer::new(config, Endpoint { tools, content, readiness, local_only: false }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { drop(stopped.await) };
        let mut http = HttpConfig::new(Access::Open);
        http.drain_timeout = Duration::from_secs(5);
        http.shutdown_grace = Duration::from_millis(50);
        let serving = tokio::spawn(serve_http(server, listener, http, stopped));
        Self { hub, address, manager, stop, serving, test_server }
    }

    /// What a client with the official Python SDK observes.
    pub(crate) async fn run_client(
        &self,
        family: RevisionFamily,
        scenario: &str,
        tool: &str,
        arguments: &Value,
    ) -> Value {
        let family = match family {
            RevisionFamily::Legacy => "legacy",
            RevisionFamily::Modern => "modern",
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/revision_matrix/client.py");
        let arguments = arguments.to_string();
        let mut client = Command::new(installed_path("excel-2.2.2/bin/python"));
        client.args([script, family, &self.address, scenario, tool, &arguments]);
        let client = client.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = timeout(TEST_TIMEOUT * 2, client).await.expect("the client ends in time").unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&stdout)
            .unwrap_or_else(|_| panic!("{family} {scenario} {tool}: {stdout}\n{stderr}"))
    }

    pub(crate) async fn close(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap().unwrap();
        self.manager.close().await;
    }
}
