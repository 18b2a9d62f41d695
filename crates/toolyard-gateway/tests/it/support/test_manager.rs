//! [`TestManager`]: a manager of servers, with their tools.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;
use toolyard_core::{
    CallContext, Caller, RawJson, SourceId, SourceInfo, Tool, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec,
};
use toolyard_mcp::{CallResult, WireLimits};
use toolyard_mcp_client::{
    GuardProgram, Host, HostEnvironment, ManagedServer, McpManager, RequestError, ServerCache, ServerState,
    Session, ToolCall, ToolRegistrar, config::McpServerConfig,
};

/// How long an operation may take on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The id of the server, if there is only one.
pub(crate) const SERVER_ID: &str = "real";

/// A manager, and the tools of its servers.
pub(crate) struct TestManager {
    pub(crate) manager: Arc<McpManager>,
    tools: Arc<RegisteredTools>,
}

#[derive(Default)]
struct RegisteredTools(Mutex<BTreeMap<SourceId, Vec<Arc<dyn Tool>>>>);

impl RegisteredTools {
    fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.0.lock().values().flatten().cloned().collect()
    }
}

impl ToolRegistrar for RegisteredTools {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.lock().insert(source.id, tools);
    }

    fn remove(&self, source: &SourceId) {
        self.0.lock().remove(source);
    }
}

struct EmptyEnvironment;

impl HostEnvironment for EmptyEnvironment {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}

/// A manager without servers.
pub(crate) fn new_manager(
    folder: &Path,
    cache: ServerCache,
    registrar: Arc<dyn ToolRegistrar>,
) -> McpManager {
    McpManager::new(Host {
        environment: std::env::vars().collect(),
        working_directory: folder.to_owned(),
        guard: Some(guard_program()),
        cache,
        registrar,
        host_environment: Arc::new(EmptyEnvironment),
        limits: WireLimits::default(),
        http: OnceLock::new(),
        telemetry: None,
    })
}

impl TestManager {
    /// Manages one server.
    pub(crate) async fn new(config: McpServerConfig, folder: &Path) -> Self {
        Self::with_cache(config, folder, ServerCache::in_memory()).await
    }

    pub(crate) async fn with_cache(config: McpServerConfig, folder: &Path, cache: ServerCache) -> Self {
        Self::with_servers(vec![config], folder, cache).await
    }

    pub(crate) async fn with_servers(
        configs: Vec<McpServerConfig>,
        folder: &Path,
        cache: ServerCache,
    ) -> Self {
        let tools = Arc::new(RegisteredTools::default());
        let manager = new_manager(folder, cache, Arc::clone(&tools) as Arc<dyn ToolRegistrar>);
        manager.apply(configs).await.unwrap();
        Self { manager: Arc::new(manager), tools }
    }

    pub(crate) fn server(&self) -> Arc<ManagedServer> {
        self.manager.server(SERVER_ID).unwrap()
    }

    pub(crate) async fn session(&self) -> Arc<Session> {
        self.manager.connect(SERVER_ID).await.unwrap()
    }

    /// The definitions of all enabled tools.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.tools.all().iter().map(|tool| tool.spec().clone()).collect()
    }

    /// The names of all enabled tools.
    pub(crate) fn names(&self) -> Vec<String> {
        self.specs().iter().map(|spec| spec.name.to_string()).collect()
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tools = self.tools.all();
        let found = tools.iter().find(|tool| *tool.spec().name == *name).cloned();
        found.unwrap_or_else(|| panic!("tool {name} does not exist"))
    }

    /// Waits for this many tools: a server may announce some after the handshake.
    pub(crate) async fn wait_for_tools(&self, count: usize) {
        self.wait_until(|| self.names().len() == count).await;
    }

    /// Waits until the server is ready, without sending it a request.
    pub(crate) async fn wait_until_ready(&self) {
        self.wait_until(|| matches!(self.server().state(), ServerState::Ready { .. })).await;
    }

    /// Waits until no request is in flight, including lists that are read again.
    pub(crate) async fn wait_until_idle(&self) {
        self.wait_until(|| {
            self.server().live_session().is_some_and(|session| session.in_flight_requests() == 0)
        })
        .await;
    }

    pub(crate) async fn wait_until(&self, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !condition() {
            let states: Vec<ServerState> =
                self.manager.servers().iter().map(|server| server.state()).collect();
            assert!(Instant::now() < deadline, "{states:?} with {:?}", self.names());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        call(self.tool(tool), arguments).await
    }

    /// Calls a tool by any name, registered or not.
    pub(crate) async fn call_unregistered(
        &self,
        name: &str,
        arguments: Value,
    ) -> Result<CallResult, RequestError> {
        let session = self.session().await;
        let arguments = RawJson::from(arguments);
        let call = ToolCall { idle_timeout: Some(TEST_TIMEOUT), ..ToolCall::new(name, &arguments) };
        session.call_tool(call).await
    }
}

/// Calls a tool.
pub(crate) async fn call(tool: Arc<dyn Tool>, arguments: Value) -> Result<ToolOutput, ToolError> {
    let request = ToolCallRequest::new(tool.spec().name.to_string(), arguments);
    tool.call(&request, &CallContext::until(Instant::now() + TEST_TIMEOUT)).await
}

/// Calls a tool for a caller that receives progress and answers input requests.
pub(crate) async fn call_for(
    tool: Arc<dyn Tool>,
    arguments: Value,
    caller: Arc<dyn Caller>,
) -> Result<ToolOutput, ToolError> {
    let request = ToolCallRequest::new(tool.spec().name.to_string(), arguments);
    let context = CallContext::until(Instant::now() + TEST_TIMEOUT).with_caller(Some(caller));
    tool.call(&request, &context).await
}

/// The example `guardian`; cargo builds it beside the folder of the tests.
pub(crate) fn guard_program() -> GuardProgram {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/guardian");
    GuardProgram { program, args: vec![OsString::from("guard")] }
}
