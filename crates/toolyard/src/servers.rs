//! MCP servers: what they may use of this machine, and how their tools are registered with the hub.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use toolyard_core::{QuarantineNotice, SourceId, SourceInfo, SourceKind, SourceTools, Tool};
use toolyard_hub::ToolHub;
use toolyard_mcp::WireLimits;
use toolyard_mcp_client::{
    CacheError, GuardProgram, Host, HostEnvironment, McpManager, NameUser, ServerCache, ToolRegistrar,
    config::McpServerConfig,
};

/// MCP servers and what they may use of this machine. The library never reads the environment itself.
#[derive(Clone)]
pub struct ServersSetup {
    /// The servers.
    pub configs: Vec<McpServerConfig>,
    /// The environment of server processes.
    pub environment: Vec<(String, String)>,
    /// The working directory of servers that set none.
    pub working_directory: PathBuf,
    /// The program that ends server processes when this process ends, even if it is killed.
    pub guard: Option<GuardProgram>,
    /// Looks up environment variables and OAuth tokens.
    pub host_environment: Arc<dyn HostEnvironment>,
    /// Changes the tools of servers before they are registered; none by default.
    #[doc(hidden)]
    pub tool_wrapper: Option<Arc<dyn ToolWrapper>>,
}

/// Changes the tools of servers before they are registered.
pub trait ToolWrapper: Send + Sync {
    /// The tools to register in place of all tools of this source.
    fn wrap(&self, source: &SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>>;

    /// A source is removed.
    fn remove(&self, source: &SourceId);
}

impl ServersSetup {
    /// Servers with an empty environment.
    pub fn new(configs: Vec<McpServerConfig>, working_directory: PathBuf) -> Self {
        Self {
            configs,
            environment: Vec::new(),
            working_directory,
            guard: None,
            host_environment: Arc::new(EmptyEnvironment),
            tool_wrapper: None,
        }
    }

    /// Gives the servers the environment variables that they inherit and that their configurations refer to.
    #[must_use]
    pub fn with_environment(mut self, environment: Vec<(String, String)>) -> Self {
        self.host_environment = Arc::new(FixedEnvironment(environment.clone()));
        self.environment = environment;
        self
    }

    /// A manager of these servers, with their cached tools registered in the hub. No server is started.
    pub(crate) async fn build_manager(
        self,
        hub: &Arc<ToolHub>,
        #[cfg(feature = "store")] store: Option<&toolyard_store::Store>,
    ) -> Result<McpManager, CacheError> {
        #[cfg(feature = "store")]
        let cache = match store {
            Some(store) => ServerCache::new(Arc::new(store.clone())),
            None => ServerCache::in_memory(),
        };
        #[cfg(not(feature = "store"))]
        let cache = ServerCache::in_memory();
        let manager = McpManager::new(Host {
            environment: self.environment,
            working_directory: self.working_directory,
            guard: self.guard,
            cache,
            registrar: Arc::new(HubRegistrar { hub: Arc::clone(hub), wrapper: self.tool_wrapper }),
            host_environment: self.host_environment,
            limits: WireLimits::default(),
            http: OnceLock::new(),
            telemetry: hub.telemetry().cloned(),
        });
        manager.apply(self.configs).await?;
        Ok(manager)
    }
}

impl fmt::Debug for ServersSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServersSetup").field("configs", &self.configs).finish_non_exhaustive()
    }
}

struct EmptyEnvironment;

impl HostEnvironment for EmptyEnvironment {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}

/// Variables that the embedder passed in.
struct FixedEnvironment(Vec<(String, String)>);

impl HostEnvironment for FixedEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }
}

/// The source other than an MCP server that has a tool of this name. Code that pins the tools of its own sources passes this to
/// [`ServerCache::update_tools`] and [`ServerCache::approve`].
pub fn name_user(hub: &ToolHub, tool: &str) -> Option<NameUser> {
    let snapshot = hub.snapshot();
    let mut users = snapshot.find(tool)?.all().filter(|user| user.source.info.kind != SourceKind::Mcp);
    let user = users.next()?;
    let precedes_servers = user.priority < hub.priority(SourceKind::Mcp);
    Some(NameUser { source: user.source_id().clone(), precedes_servers })
}

struct HubRegistrar {
    hub: Arc<ToolHub>,
    wrapper: Option<Arc<dyn ToolWrapper>>,
}

impl HubRegistrar {
    fn wrapped(&self, source: &SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        match &self.wrapper {
            Some(wrapper) => wrapper.wrap(source, tools),
            None => tools,
        }
    }
}

impl ToolRegistrar for HubRegistrar {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        let tools = self.wrapped(&source, tools);
        self.hub.register(source, tools);
    }

    fn replace_with_quarantined(
        &self,
        source: SourceInfo,
        tools: Vec<Arc<dyn Tool>>,
        quarantined: Vec<QuarantineNotice>,
    ) {
        let tools = self.wrapped(&source, tools);
        self.hub.register_with_quarantined(source, tools, quarantined);
    }

    fn replace_all(&self, sources: Vec<SourceTools>) {
        let wrapped = sources.into_iter().map(|SourceTools { source, tools, quarantined }| SourceTools {
            tools: self.wrapped(&source, tools),
            source,
            quarantined,
        });
        self.hub.register_all(wrapped.collect());
    }

    fn name_user(&self, tool: &str) -> Option<NameUser> {
        name_user(&self.hub, tool)
    }

    fn report_ready(&self, source: &SourceId) {
        self.hub.report_ready(source);
    }

    fn remove(&self, source: &SourceId) {
        if let Some(wrapper) = &self.wrapper {
            wrapper.remove(source);
        }
        self.hub.remove(source);
    }
}
