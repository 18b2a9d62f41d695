//! MCP servers of a yard: what they may use of the machine, and how their tools reach the hub.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use toolyard_core::{SourceId, SourceInfo, Tool};
use toolyard_hub::ToolHub;
use toolyard_mcp::{
    cache::ServerCache,
    client::{GuardProgram, Host, InputHandler, McpManager, NobodyToAsk, Registrar, Surroundings},
    config::McpServerConfig,
    wire::WireLimits,
};
use toolyard_store::{Store, StoreError};

/// What MCP servers of a yard may use of the machine. Nothing is looked up by the library itself.
#[derive(Clone)]
pub struct ServersSetup {
    /// The servers.
    pub configs: Vec<McpServerConfig>,
    /// What every server may see of the environment.
    pub environment: Vec<(String, String)>,
    /// Where servers run that do not say where.
    pub working_directory: PathBuf,
    /// The program that sees to it that no server survives us, even if we are killed.
    pub guard: Option<GuardProgram>,
    /// Variables, tokens and logs.
    pub surroundings: Arc<dyn Surroundings>,
    /// Who answers what servers ask back.
    pub input: Arc<dyn InputHandler>,
}

impl ServersSetup {
    /// Servers that see nothing of the environment and find nobody to ask.
    pub fn new(configs: Vec<McpServerConfig>, working_directory: PathBuf) -> Self {
        Self {
            configs,
            environment: Vec::new(),
            working_directory,
            guard: None,
            surroundings: Arc::new(Nothing),
            input: Arc::new(NobodyToAsk),
        }
    }

    /// A manager of these servers, whose known tools are in the hub afterwards. Nothing is started.
    pub(crate) async fn start(
        self,
        hub: &Arc<ToolHub>,
        store: Option<&Store>,
    ) -> Result<McpManager, StoreError> {
        let cache = match store {
            Some(store) => ServerCache::new(Arc::new(store.clone())),
            None => ServerCache::in_memory(),
        };
        let manager = McpManager::new(Host {
            environment: self.environment,
            working_directory: self.working_directory,
            guard: self.guard,
            cache,
            registrar: Arc::new(IntoHub(Arc::clone(hub))),
            input: self.input,
            surroundings: self.surroundings,
            limits: WireLimits::default(),
            http: OnceLock::new(),
        });
        manager.apply(self.configs).await.map_err(StoreError::Database)?;
        Ok(manager)
    }
}

impl fmt::Debug for ServersSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServersSetup").field("configs", &self.configs).finish_non_exhaustive()
    }
}

/// A machine that offers nothing.
struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}

/// Puts tools of servers into the hub.
struct IntoHub(Arc<ToolHub>);

impl Registrar for IntoHub {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.register(source, tools);
    }

    fn remove(&self, source: &SourceId) {
        self.0.remove(source);
    }
}
