//! A house around the manager: remembers in memory, keeps the tools, answers questions, calls.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::Path,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolyard_core::{
    BoxFuture, CallContext, Caller, RawJson, SourceId, SourceInfo, Tool, ToolCallRequest, ToolError,
    ToolOutput, ToolSpec,
};
use toolyard_mcp::{
    cache::ServerCache,
    client::{
        GuardProgram, Host, InputHandler, InputRequest, McpManager, NobodyToAsk, Registrar, RequestError,
        Server, ServerState, Session, Surroundings, ToolCall,
    },
    config::McpServerConfig,
    wire::{CallResult, RpcError, WireLimits},
};

/// How long anything may take that does not wait for a limit, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The name of the one server of a house.
pub(crate) const NAME: &str = "real";

/// A manager with one server.
pub(crate) struct House {
    pub(crate) manager: Arc<McpManager>,
    tools: Arc<Tools>,
}

#[derive(Default)]
struct Tools(Mutex<BTreeMap<SourceId, Vec<Arc<dyn Tool>>>>);

impl Tools {
    fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.0.lock().unwrap().values().flatten().cloned().collect()
    }
}

impl Registrar for Tools {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.lock().unwrap().insert(source.id, tools);
    }

    fn remove(&self, source: &SourceId) {
        self.0.lock().unwrap().remove(source);
    }
}

struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}

/// A manager without servers whose tools go to this registrar.
pub(crate) fn manager_of(
    folder: &Path,
    input: Arc<dyn InputHandler>,
    cache: ServerCache,
    registrar: Arc<dyn Registrar>,
) -> McpManager {
    McpManager::new(Host {
        environment: std::env::vars().collect(),
        working_directory: folder.to_owned(),
        guard: Some(guardian()),
        cache,
        registrar,
        input,
        surroundings: Arc::new(Nothing),
        limits: WireLimits::default(),
        http: OnceLock::new(),
    })
}

impl House {
    /// A house without anyone to ask.
    pub(crate) async fn new(config: McpServerConfig, folder: &Path) -> Self {
        Self::furnished(config, folder, Arc::new(NobodyToAsk), ServerCache::in_memory()).await
    }

    pub(crate) async fn furnished(
        config: McpServerConfig,
        folder: &Path,
        input: Arc<dyn InputHandler>,
        cache: ServerCache,
    ) -> Self {
        Self::of(vec![config], folder, input, cache).await
    }

    /// A house with several servers.
    pub(crate) async fn of(
        configs: Vec<McpServerConfig>,
        folder: &Path,
        input: Arc<dyn InputHandler>,
        cache: ServerCache,
    ) -> Self {
        let tools = Arc::new(Tools::default());
        let manager = manager_of(folder, input, cache, Arc::clone(&tools) as Arc<dyn Registrar>);
        manager.apply(configs).await.unwrap();
        Self { manager: Arc::new(manager), tools }
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        self.manager.server(NAME).unwrap()
    }

    pub(crate) async fn session(&self) -> Arc<Session> {
        self.manager.connect(NAME).await.unwrap()
    }

    /// All tools that can be called.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.tools.all().iter().map(|tool| tool.spec().clone()).collect()
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.specs().iter().map(|spec| spec.name.to_string()).collect()
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tools = self.tools.all();
        let found = tools.iter().find(|tool| *tool.spec().name == *name).cloned();
        found.unwrap_or_else(|| panic!("there is no tool {name}"))
    }

    /// Waits until this many tools are there: a server may tell of some only after it was introduced.
    pub(crate) async fn until_tools(&self, count: usize) {
        self.until(|| self.names().len() == count).await;
    }

    /// Waits until the server is ready, without asking it for anything.
    pub(crate) async fn until_ready(&self) {
        self.until(|| matches!(self.server().state(), ServerState::Ready { .. })).await;
    }

    /// Waits until no answer is waited for, not even to a list that is read once more.
    pub(crate) async fn until_idle(&self) {
        self.until(|| self.server().live().is_some_and(|session| session.busy() == 0)).await;
    }

    pub(crate) async fn until(&self, reached: impl Fn() -> bool) {
        let limit = Instant::now() + PATIENCE;
        while !reached() {
            let states: Vec<ServerState> =
                self.manager.servers().iter().map(|server| server.state()).collect();
            assert!(Instant::now() < limit, "{states:?} with {:?}", self.names());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Calls a tool as the hub does.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        call(self.tool(tool), arguments).await
    }

    /// Calls anything under any name, beside the shelf.
    pub(crate) async fn call_anything(
        &self,
        name: &str,
        arguments: Value,
    ) -> Result<CallResult, RequestError> {
        let session = self.session().await;
        let arguments = RawJson::from(arguments);
        let call = ToolCall { silence: Some(PATIENCE), ..ToolCall::new(name, &arguments) };
        session.call_tool(call).await
    }
}

/// Calls a tool as the hub does.
pub(crate) async fn call(tool: Arc<dyn Tool>, arguments: Value) -> Result<ToolOutput, ToolError> {
    let request = ToolCallRequest::new(tool.spec().name.to_string(), arguments);
    tool.call(&request, &CallContext::until(Instant::now() + PATIENCE)).await
}

/// Calls a tool as the hub does for somebody who can be told and asked things.
pub(crate) async fn call_for(
    tool: Arc<dyn Tool>,
    arguments: Value,
    caller: Arc<dyn Caller>,
) -> Result<ToolOutput, ToolError> {
    let request = ToolCallRequest::new(tool.spec().name.to_string(), arguments);
    let context = CallContext::until(Instant::now() + PATIENCE).with_caller(Some(caller));
    tool.call(&request, &context).await
}

/// The example that can be a guardian; cargo puts it beside the folder of the tests.
pub(crate) fn guardian() -> GuardProgram {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/stdio_hub");
    GuardProgram { program, args: vec![OsString::from("guard")] }
}

/// Somebody who answers every question the same way, and remembers what was asked.
#[derive(Debug, Default)]
pub(crate) struct Somebody {
    pub(crate) asked: Mutex<Vec<String>>,
}

impl InputHandler for Somebody {
    fn capabilities(&self) -> RawJson {
        json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}}).into()
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        self.asked.lock().unwrap().push(request.method.to_owned());
        let answer = match request.method {
            "elicitation/create" => json!({"action": "accept", "content": {"name": "Ada", "check": true}}),
            "sampling/createMessage" => json!({
                "role": "assistant", "model": "a-model", "stopReason": "endTurn",
                "content": {"type": "text", "text": "sampled words"},
            }),
            _ => json!({"roots": [{"uri": "file:///tmp/a-root", "name": "a root"}]}),
        };
        Box::pin(async move { Ok(answer.into()) })
    }
}
