//! [`ToolyardBuilder`]: configures and builds a [`Toolyard`].

use std::{path::PathBuf, sync::Arc};

use toolyard_core::{
    Audit, CallPolicy, History, Results, SourceInfo, Synthesizer, Tool, telemetry::Telemetry,
};
use toolyard_hub::{CallOptions, HubConfig, ToolHub};
use toolyard_tools::{ToolFunction, function};

use super::{Error, Toolyard};

/// Configures a [`Toolyard`].
#[derive(Default)]
#[must_use]
pub struct ToolyardBuilder {
    tools: Vec<Arc<dyn Tool>>,
    environment: Vec<(String, String)>,
    working_directory: Option<PathBuf>,
    history: Option<Arc<dyn History>>,
    results: Option<Arc<dyn Results>>,
    audit: Option<Arc<dyn Audit>>,
    synthesizer: Option<Arc<dyn Synthesizer>>,
    telemetry: Option<Arc<dyn Telemetry>>,
    policy: Option<Arc<dyn CallPolicy>>,
    /// The names of the native tools to offer; `None` for all.
    #[cfg(feature = "native")]
    native_tools: Option<Vec<String>>,
    #[cfg(feature = "native")]
    web_search: Option<toolyard_tools::native::SearchSettings>,
    #[cfg(feature = "native")]
    skill_environment: Option<super::SkillEnvironment>,
    #[cfg(feature = "store")]
    store: Option<toolyard_store::Store>,
    #[cfg(feature = "store")]
    data_folder: Option<PathBuf>,
    #[cfg(feature = "store")]
    loads_past_requests_lazily: bool,
    #[cfg(feature = "mcp")]
    server_configs: Vec<toolyard_mcp_client::config::McpServerConfig>,
    #[cfg(feature = "mcp")]
    servers: Option<crate::ServersSetup>,
    #[cfg(feature = "agent")]
    settings: crate::Settings,
    #[cfg(feature = "agent")]
    models: Option<crate::Models>,
    #[cfg(feature = "agent")]
    added_models: Vec<Arc<dyn toolyard_model::Model>>,
    #[cfg(feature = "agent")]
    approver: Option<Arc<dyn crate::Approver>>,
    #[cfg(feature = "agent")]
    owner: Option<String>,
    #[cfg(feature = "gateway")]
    content: crate::serve::FunctionContent,
}

impl std::fmt::Debug for ToolyardBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_ref()).collect();
        f.debug_struct("ToolyardBuilder").field("tools", &tools).finish_non_exhaustive()
    }
}

impl ToolyardBuilder {
    /// Adds an async function as a tool. Its parameter is a struct from which the schema is derived; see
    /// [`toolyard_tools::function()`] for the other forms.
    pub fn function<Parameters>(
        self,
        name: &str,
        description: &str,
        f: impl ToolFunction<Parameters>,
    ) -> Self {
        self.tool(function(name, description, f))
    }

    /// Adds any tool. It replaces the native tool of the same name.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The environment variables that servers, models and search engines may refer to, such as those of this process:
    /// `std::env::vars()`. A server process inherits only what it needs to run (`PATH`, `HOME` and the like) and what its
    /// configuration names. Without this there are none; the library never reads the environment itself.
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = variables.into_iter().collect();
        self
    }

    /// The folder in which servers run that name none, and to which relative paths of the settings refer. By default, the
    /// current folder.
    pub fn working_directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.working_directory = Some(folder.into());
        self
    }

    /// Replaces the statistics of past calls, which order equivalent tools.
    pub fn history(mut self, history: Arc<dyn History>) -> Self {
        self.history = Some(history);
        self
    }

    /// Replaces the store of results that are too long to be shown whole.
    pub fn results(mut self, results: Arc<dyn Results>) -> Self {
        self.results = Some(results);
        self
    }

    /// Replaces the audit log.
    pub fn audit(mut self, audit: Arc<dyn Audit>) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Replaces what combines the results of several sources. By default, the default model does, if there is one.
    pub fn synthesizer(mut self, synthesizer: Arc<dyn Synthesizer>) -> Self {
        self.synthesizer = Some(synthesizer);
        self
    }

    /// Reports requests, tool calls, runs and model calls, for traces and metrics.
    pub fn telemetry(mut self, telemetry: Arc<dyn Telemetry>) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// Decides about calls, in place of the policies of the settings and of the store, also after a reload of settings.
    pub fn policy(mut self, policy: Arc<dyn CallPolicy>) -> Self {
        self.policy = Some(policy);
        self
    }
}

#[cfg(feature = "native")]
impl ToolyardBuilder {
    /// Offers only the native tools of these names, none if there are none: `calculate`, `get_time`, `search_web`,
    /// `get_conversation_history`, `read_result`. All are offered by default. Without `read_result`, results that are too
    /// long to be shown whole cannot be read further.
    pub fn native_tools<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.native_tools = Some(names.into_iter().map(str::to_owned).collect());
        self
    }

    /// Searches the web with this engine, in place of the one of the settings.
    pub fn web_search(mut self, settings: toolyard_tools::native::SearchSettings) -> Self {
        self.web_search = Some(settings);
        self
    }

    /// Loads skills, with this environment.
    pub fn skill_environment(mut self, skill_environment: super::SkillEnvironment) -> Self {
        self.skill_environment = Some(skill_environment);
        self
    }
}

#[cfg(feature = "store")]
impl ToolyardBuilder {
    /// Stores results, statistics, runs, the audit log and trust decisions durably.
    pub fn store(mut self, store: toolyard_store::Store) -> Self {
        self.store = Some(store);
        self
    }

    /// The folder for files of this process: audit records that wait for a PostgreSQL store to come back. Without it they wait
    /// in memory only. Those that wait for a SQLite store are beside it.
    pub fn data_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_folder = Some(folder.into());
        self
    }

    /// Defers reading past requests until the first search: call [`ToolHub::wait_until_searchable`] before it. Saves start-up time
    /// of a hub that clients may never search.
    #[doc(hidden)]
    pub fn lazy_past_requests(mut self) -> Self {
        self.loads_past_requests_lazily = true;
        self
    }
}

#[cfg(feature = "mcp")]
impl ToolyardBuilder {
    /// Adds an MCP server. It starts when one of its tools is called, or when a tool is called that nobody knows.
    pub fn server(mut self, config: toolyard_mcp_client::config::McpServerConfig) -> Self {
        self.server_configs.push(config);
        self
    }

    /// Adds MCP servers together with all that they may use of this machine, in place of [`ToolyardBuilder::environment`] and
    /// [`ToolyardBuilder::working_directory`]. Servers of the settings are not added.
    pub fn servers(mut self, servers: crate::ServersSetup) -> Self {
        self.servers = Some(servers);
        self
    }
}

#[cfg(feature = "agent")]
impl ToolyardBuilder {
    /// Uses these settings, with their servers and their search engine.
    pub fn settings(mut self, settings: crate::Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Replaces the models of the settings.
    pub fn models(mut self, models: crate::Models) -> Self {
        self.models = Some(models);
        self
    }

    /// Adds a model under its own name. The first one added becomes the default model.
    pub fn model(mut self, model: impl toolyard_model::Model + 'static) -> Self {
        self.added_models.push(Arc::new(model));
        self
    }

    /// Decides on calls of agents that need an approval. Without an approver, such a call suspends its run.
    pub fn approver(mut self, approver: impl crate::Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// The name under which this process claims runs; it must be unique among processes.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }
}

#[cfg(feature = "gateway")]
impl ToolyardBuilder {
    /// Adds an async function as an MCP prompt. Its parameter is a struct whose fields, which are text, are the arguments; it
    /// returns a text or messages.
    pub fn prompt<A, F, Fut, T, E>(mut self, name: &str, description: &str, f: F) -> Self
    where
        A: serde::de::DeserializeOwned + schemars::JsonSchema,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: crate::PromptText,
        E: std::fmt::Display,
    {
        self.content.prompts.push(crate::serve::PromptFunction::new(name, description, f));
        self
    }

    /// Adds an async function as an MCP resource with this URI. It returns text or bytes.
    pub fn resource<F, Fut, T, E>(mut self, uri: &str, name: &str, mime_type: &str, f: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<crate::ResourceContent>,
        E: std::fmt::Display,
    {
        self.content.resources.push(crate::serve::ResourceFunction::new(uri, name, mime_type, f));
        self
    }
}

impl ToolyardBuilder {
    /// Builds the `Toolyard`. Trusted skill programs may be started to describe their tools; no other program is.
    ///
    /// # Errors
    /// [`Error::InvalidTool`] if a tool's name or schema cannot be served over MCP, and others if the settings, the store or the
    /// servers cannot be used.
    #[cfg_attr(
        not(any(feature = "mcp", feature = "store", feature = "native")),
        expect(clippy::unused_async, reason = "the same signature with every feature")
    )]
    pub async fn build(mut self) -> Result<Toolyard, Error> {
        self.tools.iter().try_for_each(|tool| tool.spec().check())?;
        let mut config = HubConfig::default();
        #[cfg(feature = "agent")]
        let models = self.build_models();
        #[cfg(feature = "agent")]
        self.configure_by_settings(&mut config, &models)?;
        #[cfg(feature = "store")]
        let persistence = {
            let lazily = self.loads_past_requests_lazily;
            let audit_required = self.audit_required();
            super::persistence::open(self.store.as_ref(), self.data_folder.take(), audit_required, lazily)
                .await?
        };
        #[cfg(feature = "store")]
        if let Some(persistence) = &persistence {
            persistence.configure(&mut config);
        }
        #[cfg(feature = "agent")]
        let policy_folder = match self.policy {
            Some(_) => None,
            None => Some(self.working_directory.clone().unwrap_or_else(|| PathBuf::from("."))),
        };
        self.configure_by_parts(&mut config);
        let tools = std::mem::take(&mut self.tools);
        #[cfg(feature = "native")]
        let tools = self.with_native_tools(tools, Arc::clone(&config.results))?;
        let hub = Arc::new(ToolHub::new(config));
        hub.register(SourceInfo::native(), tools);
        #[cfg(feature = "native")]
        let skills = self.register_skills(&hub).await?;
        #[cfg(feature = "mcp")]
        let servers = match self.servers_setup()? {
            None => None,
            #[cfg(feature = "store")]
            Some(setup) => Some(Arc::new(setup.build_manager(&hub, self.store.as_ref()).await?)),
            #[cfg(not(feature = "store"))]
            Some(setup) => Some(Arc::new(setup.build_manager(&hub).await?)),
        };
        #[cfg(feature = "agent")]
        if let Some(servers) = &servers {
            servers.set_isolation_limits(self.settings.isolation.limits());
        }
        #[cfg(feature = "agent")]
        let agents = self.build_agents(&hub, models);
        #[cfg(feature = "agent")]
        agents.refresh().await;
        Ok(Toolyard {
            options: self.call_options(),
            #[cfg(feature = "mcp")]
            servers,
            #[cfg(feature = "native")]
            skills,
            #[cfg(feature = "store")]
            persistence,
            #[cfg(feature = "agent")]
            reloadable: crate::reload::Reloadable::new(self.settings, agents, policy_folder),
            #[cfg(feature = "agent")]
            approver: self.approver,
            #[cfg(feature = "gateway")]
            content: Arc::new(self.content),
            hub,
        })
    }

    /// What the embedder passed in replaces what the settings and the store would bring.
    fn configure_by_parts(&mut self, config: &mut HubConfig) {
        if let Some(history) = self.history.take() {
            config.history = history;
        }
        if let Some(results) = self.results.take() {
            config.results = results;
        }
        if let Some(audit) = self.audit.take() {
            config.audit = Some(audit);
        }
        if let Some(synthesizer) = self.synthesizer.take() {
            config.synthesizer = Some(synthesizer);
        }
        config.telemetry = self.telemetry.take();
        if let Some(policy) = self.policy.take() {
            config.policy = Some(policy);
        }
    }

    #[cfg(feature = "agent")]
    fn call_options(&self) -> CallOptions {
        CallOptions::default().with_timeout(self.settings.call.timeout())
    }

    #[cfg(not(feature = "agent"))]
    #[expect(clippy::unused_self, reason = "with the feature `agent`, the settings decide")]
    fn call_options(&self) -> CallOptions {
        CallOptions::default()
    }

    #[cfg(all(feature = "store", feature = "agent"))]
    fn audit_required(&self) -> bool {
        self.settings.audit == crate::settings::AuditSetting::Required
    }

    #[cfg(all(feature = "store", not(feature = "agent")))]
    #[expect(clippy::unused_self, reason = "with the feature `agent`, the settings decide")]
    fn audit_required(&self) -> bool {
        false
    }
}

#[cfg(feature = "native")]
impl ToolyardBuilder {
    /// The tools of the embedder and the chosen native tools that they do not replace.
    fn with_native_tools(
        &self,
        mut tools: Vec<Arc<dyn Tool>>,
        results: Arc<dyn Results>,
    ) -> Result<Vec<Arc<dyn Tool>>, Error> {
        #[cfg(feature = "agent")]
        let settings = {
            let web_search = match &self.web_search {
                Some(settings) => settings.clone(),
                None => self.settings.search_engine(|name| variable(&self.environment, name))?,
            };
            toolyard_tools::native::NativeToolSettings {
                default_timezone: self.settings.time.zone.clone(),
                search: web_search,
            }
        };
        #[cfg(not(feature = "agent"))]
        let settings = toolyard_tools::native::NativeToolSettings {
            default_timezone: None,
            search: self.web_search.clone().unwrap_or_default(),
        };
        let native = settings.build(results);
        if let Some(chosen) = &self.native_tools {
            let known: Vec<String> = native.iter().map(|tool| tool.spec().name.to_string()).collect();
            if let Some(name) = chosen.iter().find(|name| !known.contains(name)) {
                return Err(Error::UnknownNativeTool { name: name.clone(), known });
            }
        }
        let replaced: Vec<Arc<str>> = tools.iter().map(|tool| Arc::clone(&tool.spec().name)).collect();
        let is_chosen = |name: &str| {
            self.native_tools.as_ref().is_none_or(|chosen| chosen.iter().any(|one| one == name))
                && !replaced.iter().any(|one| one.as_ref() == name)
        };
        tools.extend(native.into_iter().filter(|tool| is_chosen(&tool.spec().name)));
        Ok(tools)
    }

    async fn register_skills(&self, hub: &ToolHub) -> Result<toolyard_tools::skill::LoadedSkills, Error> {
        let Some(environment) = &self.skill_environment else { return Ok(Default::default()) };
        #[cfg(feature = "store")]
        let mut skills = super::skills::load_skills(environment, self.store.as_ref()).await?;
        #[cfg(not(feature = "store"))]
        let mut skills = super::skills::load_skills(environment).await?;
        for (source, tools) in std::mem::take(&mut skills.sources) {
            hub.register(source, tools);
        }
        Ok(skills)
    }
}

#[cfg(feature = "mcp")]
impl ToolyardBuilder {
    /// The servers of the builder and of the settings; `None` if there are none.
    fn servers_setup(&mut self) -> Result<Option<crate::ServersSetup>, Error> {
        let mut added = std::mem::take(&mut self.server_configs);
        if let Some(mut setup) = self.servers.take() {
            setup.configs.append(&mut added);
            return Ok(Some(setup));
        }
        let folder = self.working_directory.clone().unwrap_or_else(|| PathBuf::from("."));
        #[cfg(feature = "agent")]
        {
            let (configs, problems) = self.settings.servers(&folder);
            if !problems.is_empty() {
                return Err(Error::InvalidServers { problems });
            }
            added.extend(configs);
        }
        let setup = crate::ServersSetup::new(added, folder).with_environment(self.environment.clone());
        Ok(Some(setup).filter(|setup| !setup.configs.is_empty()))
    }
}

#[cfg(feature = "agent")]
impl ToolyardBuilder {
    fn build_models(&mut self) -> crate::Models {
        let environment = self.environment.clone();
        let lookup = move |name: &str| variable(&environment, name);
        let mut models = self.models.take().unwrap_or_else(|| crate::Models::new(&self.settings, lookup));
        std::mem::take(&mut self.added_models).into_iter().for_each(|model| models.add(model));
        models
    }

    fn configure_by_settings(&self, config: &mut HubConfig, models: &crate::Models) -> Result<(), Error> {
        let toolyard_hub::HubSettings { rules, capabilities, limits, retry, synthesizer } =
            crate::reload::hub_settings(&self.settings, models);
        config.rules = rules;
        config.capabilities = capabilities;
        config.limits = limits;
        config.retry = retry;
        config.synthesizer = synthesizer;
        if let Some(name) = self.settings.search.embeddings.as_deref() {
            match models.get(Some(name)) {
                Ok(model) => config.embedder = model.embedder(),
                Err(error) => tracing::warn!(%error, "tools are found by words only"),
            }
        }
        let folder = self.working_directory.as_deref().unwrap_or(std::path::Path::new("."));
        config.policy = crate::policy::hub_policy(&self.settings, folder)?;
        let quota = crate::quotas::hub_quota(&self.settings, self.quota_budgets(), None);
        config.quota = quota.map_err(crate::SettingsError::from)?;
        Ok(())
    }

    /// The store as far as quotas need it; none without a store.
    #[cfg_attr(
        not(feature = "store"),
        expect(clippy::unused_self, reason = "the same signature with every feature")
    )]
    fn quota_budgets(&self) -> Option<Arc<dyn toolyard_core::QuotaBudgets>> {
        #[cfg(feature = "store")]
        if let Some(store) = &self.store {
            return Some(Arc::new(store.clone()));
        }
        None
    }

    /// The agents. Without a store, runs and conversations live in memory.
    fn build_agents(&mut self, hub: &Arc<ToolHub>, models: crate::Models) -> crate::Agents {
        let owner = self.owner.take().unwrap_or_else(|| format!("toolyard-{}", toolyard_core::process_tag()));
        #[cfg(feature = "store")]
        if let Some(store) = &self.store {
            let stores = crate::agents::AgentStores::of_store(store);
            return crate::Agents::new(&self.settings, hub, models, stores, owner);
        }
        let stores = crate::agents::AgentStores::in_memory();
        crate::Agents::new(&self.settings, hub, models, stores, owner)
    }
}

#[cfg(feature = "agent")]
fn variable(environment: &[(String, String)], name: &str) -> Option<String> {
    environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}
