//! Puts the rooms together: settings and surroundings in, a hub with all its tools out.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_agent::{AgentError, MemoryLog, RunEnd};
use toolyard_core::{
    Approvals, Conversations, Descriptions, RawJson, RunId, RunLog, Servers as _, SourceInfo, Tool,
    ToolCallRequest, ToolError, ToolOutput,
};
use toolyard_hub::{CallOptions, HubConfig, RetryPolicy, ToolHub, search::lexicon::Lexicons};
use toolyard_mcp::{
    client::{Applied, McpManager},
    config::McpServerConfig,
};
use toolyard_model::Model;
use toolyard_store::{Statistics, Store, StoreError, StoredAudit, StoredHistory, StoredRequests};
use toolyard_tools::{
    IntoOutput, function,
    native::{NativeTools, SearchSettings},
    skill::{self, LoadedSkills, MemoryDescriptions, SkillFolder, TrustBook},
};

use crate::{Agents, AgentsError, Models, ServersSetup, Settings, SettingsError, agents::told};

/// What a yard may use of the machine it runs on. Nothing is looked up by the library itself.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Where skills are looked for.
    pub skill_folders: Vec<SkillFolder>,
    /// What programs of skills see of the environment.
    pub environment: Vec<(String, String)>,
    /// Where programs of skills run.
    pub working_directory: PathBuf,
}

/// Why there is no yard, or why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] ToolError),
    /// There is nobody to manage servers.
    #[error("this yard was built without servers: give it some, or an empty list of them, when it is built")]
    WithoutServers,
    /// An agent cannot be asked.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// A run could not be begun or gone on with.
    #[error(transparent)]
    Agent(Box<AgentError>),
    /// A question was not answered.
    #[error("run {run} has no answer: {}", told(.end))]
    NotAnswered {
        /// The run.
        run: RunId,
        /// How it stands.
        end: Box<RunEnd>,
    },
}

/// A hub with its tools.
#[derive(Debug)]
pub struct Toolyard {
    hub: Arc<ToolHub>,
    servers: Option<Arc<McpManager>>,
    options: CallOptions,
    skills: LoadedSkills,
    kept: Option<Kept>,
    agents: Agents,
}

/// What writes to the store in the background.
#[derive(Debug)]
struct Kept {
    store: Store,
    history: Arc<StoredHistory>,
    past_requests: Arc<StoredRequests>,
    audit: Arc<StoredAudit>,
}

/// What a yard is made of.
#[derive(Default)]
pub struct ToolyardBuilder {
    settings: Settings,
    search: SearchSettings,
    lexicons: Option<Lexicons>,
    #[cfg(feature = "embedding")]
    model: Option<Arc<toolyard_hub::search::embedding::EmbeddingModel>>,
    surroundings: Option<Surroundings>,
    store: Option<Store>,
    servers: Option<ServersSetup>,
    tools: Vec<Arc<dyn Tool>>,
    searches_later: bool,
    models: Option<Models>,
    given_models: Vec<Arc<dyn Model>>,
    conversation: Option<Arc<dyn Conversations>>,
    owner: Option<String>,
}

impl std::fmt::Debug for ToolyardBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolyardBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Toolyard {
    /// Begins a yard with the native tools.
    pub fn builder() -> ToolyardBuilder {
        ToolyardBuilder::default()
    }

    /// Calls a tool by name.
    pub async fn call(&self, tool: &str, arguments: impl Into<RawJson>) -> Result<ToolOutput, ToolError> {
        self.hub.execute(&ToolCallRequest::new(tool, arguments), &self.options).await
    }

    /// Stops all servers and waits until everything that was noted is in the store. A yard that is dropped without this
    /// may lose its last second of statistics and audit records.
    pub async fn close(&self) -> Result<(), StoreError> {
        if let Some(servers) = &self.servers {
            servers.close().await;
        }
        if let Some(kept) = &self.kept {
            kept.audit.flush().await;
            kept.history.flush().await?;
            kept.past_requests.flush().await?;
        }
        Ok(())
    }

    /// The store, if there is one.
    pub fn store(&self) -> Option<&Store> {
        self.kept.as_ref().map(|kept| &kept.store)
    }

    /// How tools have been doing, by tool and source; empty without a store.
    pub fn statistics(&self) -> Vec<Statistics> {
        self.kept.as_ref().map(|kept| kept.history.statistics()).unwrap_or_default()
    }

    /// The agents, for everything that [`Toolyard::agent`] does not do.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// The hub, for everything else.
    pub fn hub(&self) -> &ToolHub {
        &self.hub
    }

    /// The hub, for whoever goes on with it elsewhere.
    pub fn shared_hub(&self) -> Arc<ToolHub> {
        Arc::clone(&self.hub)
    }

    /// How calls are carried out unless somebody says otherwise.
    pub fn options(&self) -> &CallOptions {
        &self.options
    }

    /// The MCP servers, if any were configured.
    pub fn servers(&self) -> Option<&McpManager> {
        self.servers.as_deref()
    }

    /// The MCP servers, for whoever goes on with them elsewhere.
    pub fn shared_servers(&self) -> Option<Arc<McpManager>> {
        self.servers.clone()
    }

    /// Uses these servers from now on. Those that did not change go on undisturbed, calls under way included; nothing is
    /// started.
    pub async fn reload_servers(&self, configs: Vec<McpServerConfig>) -> Result<Applied, Error> {
        let manager = self.servers.as_ref().ok_or(Error::WithoutServers)?;
        Ok(manager.apply(configs).await.map_err(StoreError::Database)?)
    }

    /// The skills that were found, and what is wrong with them.
    pub fn skills(&self) -> &LoadedSkills {
        &self.skills
    }
}

impl ToolyardBuilder {
    /// Uses these settings.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Searches the web with this engine.
    #[must_use]
    pub fn search(mut self, search: SearchSettings) -> Self {
        self.search = search;
        self
    }

    /// Finds tools with these lexicons too; a small table is always there.
    #[must_use]
    pub fn lexicons(mut self, lexicons: Lexicons) -> Self {
        self.lexicons = Some(lexicons);
        self
    }

    /// Finds tools with what this model makes of a request, too.
    #[cfg(feature = "embedding")]
    #[must_use]
    pub fn search_model(mut self, model: toolyard_hub::search::embedding::EmbeddingModel) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Keeps results, statistics, the audit log and decisions beyond the life of the process.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Uses skills.
    #[must_use]
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = Some(surroundings);
        self
    }

    /// Uses MCP servers. None is started before one of its tools is called.
    #[must_use]
    pub fn servers(mut self, servers: ServersSetup) -> Self {
        self.servers = Some(servers);
        self
    }

    /// Reads what tools were used for only when somebody searches, which a hub that is only served may never do:
    /// [`ToolHub::ready_to_search`] comes before the first search then.
    #[must_use]
    pub fn searches_later(mut self) -> Self {
        self.searches_later = true;
        self
    }

    /// Uses these models; without them, those of the settings that need no variable.
    #[must_use]
    pub fn models(mut self, models: Models) -> Self {
        self.models = Some(models);
        self
    }

    /// Adds a model under its own name; agents that name none think with the first one added.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.given_models.push(model);
        self
    }

    /// Lets `get_conversation_history` recall this conversation.
    #[must_use]
    pub fn conversation(mut self, conversation: Arc<dyn Conversations>) -> Self {
        self.conversation = Some(conversation);
        self
    }

    /// The name under which this process works on runs; it must be no other process's.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Adds an async function as a tool; its schema comes from its type. See [`toolyard_tools::function()`].
    #[must_use]
    pub fn tool<A, F, Fut>(self, name: &str, description: &str, f: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutput> + Send + 'static,
    {
        self.with(function(name, description, f))
    }

    /// Adds any tool.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The yard. Skills' programs may be asked for their descriptions here; nothing else is started.
    pub async fn build(self) -> Result<Toolyard, Error> {
        let mut config = HubConfig {
            rules: self.settings.rules(),
            capabilities: self.settings.capabilities(),
            limits: self.settings.limits(),
            retry: RetryPolicy { attempts: self.settings.call.attempts, ..RetryPolicy::default() },
            ..HubConfig::default()
        };
        if let Some(lexicons) = self.lexicons {
            config.lexicon = Arc::new(lexicons);
        }
        #[cfg(feature = "embedding")]
        {
            config.model = self.model;
        }
        let kept = match &self.store {
            Some(store) => {
                let history = StoredHistory::open(store).await?;
                let past_requests = match self.searches_later {
                    true => StoredRequests::later(store),
                    false => StoredRequests::open(store).await?,
                };
                let audit = Arc::new(StoredAudit::start(store));
                Some(Kept { store: store.clone(), history, past_requests, audit })
            }
            None => None,
        };
        if let Some(kept) = &kept {
            config.results = Arc::new(kept.store.clone());
            config.history = Arc::clone(&kept.history) as _;
            config.audit = Some(Arc::clone(&kept.audit) as _);
            config.past_requests = Some(Arc::clone(&kept.past_requests) as _);
        }
        let native = NativeTools { default_timezone: self.settings.time.zone.clone(), search: self.search };
        // A function of one's own replaces the native tool of the same name: whoever writes it knows.
        let own: Vec<Arc<str>> = self.tools.iter().map(|tool| Arc::clone(&tool.spec().name)).collect();
        let mut tools = self.tools;
        let built_in = native.tools(Arc::clone(&config.results), self.conversation);
        tools.extend(built_in.into_iter().filter(|tool| !own.contains(&tool.spec().name)));

        let hub = Arc::new(ToolHub::new(config));
        hub.register(SourceInfo::native(), tools);
        let mut skills = match &self.surroundings {
            Some(surroundings) => load_skills(surroundings, self.store.as_ref()).await?,
            None => LoadedSkills::default(),
        };
        for (source, tools) in std::mem::take(&mut skills.sources) {
            hub.register(source, tools);
        }
        let servers = match self.servers {
            Some(setup) => Some(Arc::new(setup.start(&hub, self.store.as_ref()).await?)),
            None => None,
        };
        let options = CallOptions::default().with_timeout(self.settings.call.timeout.0);
        let mut models = self.models.unwrap_or_else(|| Models::new(&self.settings, |_| None));
        self.given_models.into_iter().for_each(|model| models.give(model));
        let owner = self.owner.unwrap_or_else(|| format!("yard-{}", std::process::id()));
        let agents = agents(&self.settings, &hub, models, self.store.as_ref(), owner);
        Ok(Toolyard { hub, servers, options, skills, kept, agents })
    }
}

/// The agents of a yard. Without a store their runs are kept as long as the yard.
fn agents(
    settings: &Settings,
    hub: &Arc<ToolHub>,
    models: Models,
    store: Option<&Store>,
    owner: String,
) -> Agents {
    let (log, approvals): (Arc<dyn RunLog>, Arc<dyn Approvals>) = match store {
        Some(store) => (Arc::new(store.clone()), Arc::new(store.clone())),
        None => {
            let memory = Arc::new(MemoryLog::default());
            (Arc::clone(&memory) as _, memory)
        }
    };
    Agents {
        hub: Arc::clone(hub),
        described: Arc::new(settings.agents.clone()),
        rules: settings.approvals.rules(),
        models,
        log,
        approvals,
        forms: store.map(|store| Arc::new(store.clone()) as _),
        owner,
        within: None,
    }
}

async fn load_skills(surroundings: &Surroundings, store: Option<&Store>) -> Result<LoadedSkills, StoreError> {
    let (trust, descriptions): (_, Arc<dyn Descriptions>) = match store {
        Some(store) => {
            let decisions = store.trusted(TrustBook::KIND).await.map_err(StoreError::Database)?;
            (TrustBook::new(decisions), Arc::new(store.clone()))
        }
        None => (TrustBook::default(), Arc::new(MemoryDescriptions::default())),
    };
    let settings = skill::SkillSettings {
        folders: surroundings.skill_folders.clone(),
        trust: &trust,
        descriptions,
        environment: surroundings.environment.clone(),
        working_directory: surroundings.working_directory.clone(),
    };
    Ok(skill::load(settings).await)
}
