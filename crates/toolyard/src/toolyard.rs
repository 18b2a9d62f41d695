//! The facade: a hub with its tools, MCP servers, skills, store and agents.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_agent::{AgentError, MemoryConversations, MemoryRunLog, RunEnd};
use toolyard_core::{
    Approvals, Conversations, PastRequest, PastRequests as _, RawJson, RunId, RunLog, Servers as _,
    SkillDescriptionCache, SourceId, SourceInfo, StorageError, Tool, ToolCallRequest, ToolError, ToolOutput,
    process_tag,
};
use toolyard_hub::{CallOptions, HubConfig, HubSettings, ToolHub};
use toolyard_mcp_client::{CacheError, ConfigChanges, McpManager, config::McpServerConfig};
use toolyard_model::Model;
use toolyard_search::lexicon::Lexicons;
use toolyard_store::{
    AuditConfig, Store, StoreError, StoredAudit, StoredExampleRequests, StoredHistory, StoredPastRequests,
    ToolStatistics,
};
use toolyard_tools::{
    IntoOutput, function,
    native::{NativeToolSettings, SearchSettings},
    skill::{self, LoadedSkills, MemoryDescriptionCache, SkillFolder, TrustedSkills},
};

use crate::{
    Agents, AgentsError, Models, ServersSetup, Settings, SettingsError,
    agent_handle::describe_end,
    reload::{Reloadable, hub_settings},
    settings::AuditSetting,
};

/// What skills may use of this machine. The library never reads the environment itself.
#[derive(Debug, Clone)]
pub struct SkillEnvironment {
    /// Folders that are searched for skills.
    pub skill_folders: Vec<SkillFolder>,
    /// The environment of skill programs.
    pub environment: Vec<(String, String)>,
    /// The working directory of skill programs.
    pub working_directory: PathBuf,
    /// The store of trust in skills and of what their programs say about themselves; `None` for that of the [`Toolyard`].
    /// It must not come from the same place as the skills.
    pub trust_store: Option<Store>,
}

/// Why a [`Toolyard`] could not be built, or an operation on it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store failed to read or write a record.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The cache of MCP servers failed.
    #[error(transparent)]
    ServerCache(#[from] CacheError),
    /// A tool call failed.
    #[error(transparent)]
    Call(#[from] ToolError),
    /// The settings require audit records, and there is no store for them.
    #[error("`audit = \"required\"` needs a store, and there is none")]
    AuditWithoutStore,
    /// Servers cannot be reloaded.
    #[error(
        "this Toolyard was built without MCP servers: pass a list of servers, which may be empty, to its builder"
    )]
    WithoutServers,
    /// No such agent, or no model for it.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// A run could not be started or resumed.
    #[error(transparent)]
    Agent(Box<AgentError>),
    /// A run ended without an answer.
    #[error("run {run} ended without an answer: {}", describe_end(.end))]
    NotAnswered {
        /// The run.
        run: RunId,
        /// How it ended.
        end: Box<RunEnd>,
    },
}

/// A hub with its tools, MCP servers, skills and agents.
#[derive(Debug)]
pub struct Toolyard {
    hub: Arc<ToolHub>,
    servers: Option<Arc<McpManager>>,
    options: CallOptions,
    skills: LoadedSkills,
    persistence: Option<Persistence>,
    agents: Agents,
    pub(crate) reloadable: Reloadable,
}

/// The store and its background writers.
#[derive(Debug)]
struct Persistence {
    store: Store,
    history: Arc<StoredHistory>,
    past_requests: Arc<StoredPastRequests>,
    example_requests: Arc<StoredExampleRequests>,
    audit: Arc<StoredAudit>,
}

/// Configures a [`Toolyard`].
#[derive(Default)]
#[must_use]
pub struct ToolyardBuilder {
    settings: Settings,
    web_search: SearchSettings,
    lexicons: Option<Lexicons>,
    #[cfg(feature = "embedding")]
    tool_search_model: Option<Arc<toolyard_search::embedding::Embedder>>,
    skill_environment: Option<SkillEnvironment>,
    store: Option<Store>,
    servers: Option<ServersSetup>,
    tools: Vec<Arc<dyn Tool>>,
    loads_past_requests_lazily: bool,
    models: Option<Models>,
    added_models: Vec<Arc<dyn Model>>,
    owner: Option<String>,
    data_folder: Option<PathBuf>,
}

impl std::fmt::Debug for ToolyardBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolyardBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Toolyard {
    /// A builder with the native tools.
    pub fn builder() -> ToolyardBuilder {
        ToolyardBuilder::default()
    }

    /// Calls a tool by name.
    pub async fn call(&self, tool: &str, arguments: impl Into<RawJson>) -> Result<ToolOutput, ToolError> {
        self.hub.execute(&ToolCallRequest::new(tool, arguments), &self.options).await
    }

    /// Stops all servers and flushes the store. Dropping a `Toolyard` without this may lose the last second of statistics
    /// and audit records. Audit records that the store does not take are kept in the spill file for the next process.
    pub async fn close(&self) -> Result<(), StoreError> {
        if let Some(servers) = &self.servers {
            servers.close().await;
        }
        if let Some(persistence) = &self.persistence {
            persistence.audit.close().await;
            persistence.history.flush().await?;
            persistence.past_requests.flush().await?;
        }
        Ok(())
    }

    /// The store, if there is one.
    pub fn store(&self) -> Option<&Store> {
        self.persistence.as_ref().map(|persistence| &persistence.store)
    }

    /// Success rates and latencies by tool and source; empty without a store.
    pub fn statistics(&self) -> Vec<ToolStatistics> {
        self.persistence.as_ref().map(|persistence| persistence.history.statistics()).unwrap_or_default()
    }

    /// The stored example requests of tools; none without a store.
    pub fn example_requests(&self) -> Option<&StoredExampleRequests> {
        self.persistence.as_ref().map(|persistence| &*persistence.example_requests)
    }

    /// Requests for which a tool of a source was called successfully, the oldest first; empty without a store.
    pub fn past_requests(&self, tool: &str, source: &SourceId) -> Vec<String> {
        let past = self.persistence.as_ref().map(|persistence| persistence.past_requests.recent(usize::MAX));
        let is_of_tool = |past: &PastRequest| past.tool == tool && past.source == *source;
        past.unwrap_or_default().into_iter().filter(is_of_tool).map(|past| past.request).collect()
    }

    /// All agents; [`Toolyard::agent`] is the short way to ask one.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// The hub.
    pub fn hub(&self) -> &ToolHub {
        &self.hub
    }

    /// A shared handle to the hub.
    pub fn shared_hub(&self) -> Arc<ToolHub> {
        Arc::clone(&self.hub)
    }

    /// The default options of a call.
    pub fn options(&self) -> &CallOptions {
        &self.options
    }

    /// The MCP servers, if any were configured.
    pub fn servers(&self) -> Option<&McpManager> {
        self.servers.as_deref()
    }

    /// A shared handle to the MCP servers, if any were configured.
    pub fn shared_servers(&self) -> Option<Arc<McpManager>> {
        self.servers.clone()
    }

    /// Replaces the MCP servers. Unchanged servers and their in-flight calls are not disturbed; none is started.
    pub async fn reload_servers(&self, configs: Vec<McpServerConfig>) -> Result<ConfigChanges, Error> {
        let manager = self.servers.as_ref().ok_or(Error::WithoutServers)?;
        Ok(manager.apply(configs).await?)
    }

    /// The skills that were found, and their problems.
    pub fn skills(&self) -> &LoadedSkills {
        &self.skills
    }
}

impl ToolyardBuilder {
    /// Uses these settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Searches the web with this engine.
    pub fn web_search(mut self, settings: SearchSettings) -> Self {
        self.web_search = settings;
        self
    }

    /// Adds lexicons to tool search, beside the built-in one.
    pub fn lexicons(mut self, lexicons: Lexicons) -> Self {
        self.lexicons = Some(lexicons);
        self
    }

    /// Adds an embedding model to tool search. Embeddings of tools are computed in the background.
    #[cfg(feature = "embedding")]
    pub fn tool_search_model(mut self, embedder: toolyard_search::embedding::Embedder) -> Self {
        self.tool_search_model = Some(Arc::new(embedder));
        self
    }

    /// Opens the embedding model on a thread of its own now, so that the first search need not go by words.
    #[cfg(feature = "embedding")]
    pub fn open_tool_search_model(self) -> Self {
        if let Some(embedder) = self.tool_search_model.clone() {
            // Without a thread, the model is opened at the first search.
            let _ =
                std::thread::Builder::new().name("embedding-model".to_owned()).spawn(move || embedder.open());
        }
        self
    }

    /// Stores results, statistics, runs, the audit log and trust decisions durably.
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// The folder for files of this process: audit records that wait for a PostgreSQL store to come back. Without it they wait
    /// in memory only. Those that wait for a SQLite store are beside it.
    pub fn data_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_folder = Some(folder.into());
        self
    }

    /// Loads skills, with this environment.
    pub fn skill_environment(mut self, skill_environment: SkillEnvironment) -> Self {
        self.skill_environment = Some(skill_environment);
        self
    }

    /// Adds MCP servers. A server starts on the first call of one of its tools.
    pub fn servers(mut self, servers: ServersSetup) -> Self {
        self.servers = Some(servers);
        self
    }

    /// Defers reading past requests and example requests until the first search: call [`ToolHub::wait_until_searchable`] before it. Saves start-up time
    /// of a hub that clients may never search.
    pub fn lazy_past_requests(mut self) -> Self {
        self.loads_past_requests_lazily = true;
        self
    }

    /// Replaces the models of the settings. Without this, only models that need no environment variable are available.
    pub fn models(mut self, models: Models) -> Self {
        self.models = Some(models);
        self
    }

    /// Adds a model under its own name. The first one added becomes the default model.
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.added_models.push(model);
        self
    }

    /// The name under which this process claims runs; it must be unique among processes.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Adds an async function as a tool, with a schema derived from its argument type. See [`toolyard_tools::function()`].
    pub fn tool<A, F, Fut>(self, name: &str, description: &str, f: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutput> + Send + 'static,
    {
        self.with(function(name, description, f))
    }

    /// Adds any tool.
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Builds the `Toolyard`. Trusted skill programs may be started to describe their tools; no other program is.
    pub async fn build(self) -> Result<Toolyard, Error> {
        let mut models = self.models.unwrap_or_else(|| Models::new(&self.settings, |_| None));
        self.added_models.into_iter().for_each(|model| models.add(model));
        let HubSettings { rules, capabilities, limits, retry, synthesizer } =
            hub_settings(&self.settings, &models);
        let breaker = self.settings.call.breaker();
        let mut config =
            HubConfig { rules, capabilities, limits, retry, breaker, synthesizer, ..HubConfig::default() };
        if let Some(lexicons) = self.lexicons {
            config.lexicon = Arc::new(lexicons);
        }
        #[cfg(feature = "embedding")]
        {
            config.embedder = self.tool_search_model;
        }
        let persistence = match &self.store {
            Some(store) => {
                let history = StoredHistory::open(store).await?;
                let (past_requests, example_requests) = match self.loads_past_requests_lazily {
                    true => (StoredPastRequests::open_lazy(store), StoredExampleRequests::open_lazy(store)),
                    false => {
                        (StoredPastRequests::open(store).await?, StoredExampleRequests::open(store).await?)
                    }
                };
                let audit = AuditConfig {
                    data_folder: self.data_folder.clone(),
                    required: self.settings.audit == AuditSetting::Required,
                    ..AuditConfig::default()
                };
                let audit = Arc::new(StoredAudit::start(store, &audit));
                Some(Persistence { store: store.clone(), history, past_requests, example_requests, audit })
            }
            None if self.settings.audit == AuditSetting::Required => return Err(Error::AuditWithoutStore),
            None => None,
        };
        if let Some(persistence) = &persistence {
            config.results = Arc::new(persistence.store.clone());
            config.history = Arc::clone(&persistence.history) as _;
            config.audit = Some(Arc::clone(&persistence.audit) as _);
            config.past_requests = Some(Arc::clone(&persistence.past_requests) as _);
            config.example_requests = Some(Arc::clone(&persistence.example_requests) as _);
        }
        let native_settings =
            NativeToolSettings { default_timezone: self.settings.time.zone.clone(), search: self.web_search };
        // A tool of the embedder replaces the native tool of the same name.
        let embedder_tools: Vec<Arc<str>> =
            self.tools.iter().map(|tool| Arc::clone(&tool.spec().name)).collect();
        let mut tools = self.tools;
        let native_tools = native_settings.build(Arc::clone(&config.results));
        tools.extend(native_tools.into_iter().filter(|tool| !embedder_tools.contains(&tool.spec().name)));

        let hub = Arc::new(ToolHub::new(config));
        hub.register(SourceInfo::native(), tools);
        let mut skills = match &self.skill_environment {
            Some(skill_environment) => load_skills(skill_environment, self.store.as_ref()).await?,
            None => LoadedSkills::default(),
        };
        for (source, tools) in std::mem::take(&mut skills.sources) {
            hub.register(source, tools);
        }
        let servers = match self.servers {
            Some(setup) => Some(Arc::new(setup.build_manager(&hub, self.store.as_ref()).await?)),
            None => None,
        };
        let options = CallOptions::default().with_timeout(self.settings.call.timeout());
        let owner = self.owner.unwrap_or_else(|| format!("toolyard-{}", process_tag()));
        let agents = build_agents(&self.settings, &hub, models, self.store.as_ref(), owner);
        let reloadable = Reloadable::new(self.settings, &agents);
        Ok(Toolyard { hub, servers, options, skills, persistence, agents, reloadable })
    }
}

/// The agents. Without a store, runs and conversations live in memory.
fn build_agents(
    settings: &Settings,
    hub: &Arc<ToolHub>,
    models: Models,
    store: Option<&Store>,
    owner: String,
) -> Agents {
    let conversations: Arc<dyn Conversations> = match store {
        Some(store) => Arc::new(store.clone()),
        None => Arc::new(MemoryConversations::default()),
    };
    let (log, approvals): (Arc<dyn RunLog>, Arc<dyn Approvals>) = match store {
        Some(store) => (Arc::new(store.clone()), Arc::new(store.clone())),
        None => {
            let memory = Arc::new(MemoryRunLog::default());
            (Arc::clone(&memory) as _, memory)
        }
    };
    Agents {
        hub: Arc::clone(hub),
        settings: Arc::new(settings.agents.clone()),
        approval_rules: settings.approvals.rules(),
        tool_timeout: settings.call.timeout.map(|timeout| timeout.0),
        models,
        log,
        approvals,
        conversations,
        result_shapes: store.map(|store| Arc::new(store.clone()) as _),
        argument_examples: store.map(|store| Arc::new(store.clone()) as _),
        owner,
    }
}

pub(crate) async fn load_skills(
    skill_environment: &SkillEnvironment,
    store: Option<&Store>,
) -> Result<LoadedSkills, StorageError> {
    let store = skill_environment.trust_store.as_ref().or(store);
    let (trust, descriptions): (_, Arc<dyn SkillDescriptionCache>) = match store {
        Some(store) => {
            let decisions = store.trust_decisions(TrustedSkills::KIND).await?;
            (TrustedSkills::new(decisions), Arc::new(store.clone()))
        }
        None => (TrustedSkills::default(), Arc::new(MemoryDescriptionCache::default())),
    };
    let settings = skill::SkillSettings {
        folders: skill_environment.skill_folders.clone(),
        trust: &trust,
        descriptions,
        environment: skill_environment.environment.clone(),
        working_directory: skill_environment.working_directory.clone(),
    };
    Ok(skill::load(settings).await)
}
