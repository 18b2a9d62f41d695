//! The configured agents and what they share.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use toolyard_agent::{
    Agent, AgentConfig, AgentParts, ApprovalRules, Chat, DEFAULT_AGENT, MemoryConversations, MemoryRunLog,
    O200k,
};
use toolyard_core::{
    AgentDefinitions, AgentOrigin, Approvals, ArgumentExample, ArgumentExamples, ConversationId,
    Conversations, InvalidConversationName, MemoryAgentDefinitions, ResultShapes, RunLog, StorageError,
};
use toolyard_hub::ToolHub;

use crate::{Models, ModelsError, Settings, settings::AgentSettings, stored_agents::StoredAgents};

const MAX_NAME_BYTES: usize = 64;

/// Why an agent is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsError {
    /// No agent has this name.
    ///
    /// Remedy: define it in `toolyard.toml` (`[agents.NAME]`), or use one of the names in the message.
    #[error("agent `{name}` does not exist; known agents: {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Names of the agents that exist.
        known: Vec<String>,
    },
    /// An agent of this name exists.
    ///
    /// Remedy: choose another name, or change the existing agent.
    #[error("agent `{0}` exists already")]
    Exists(String),
    /// The agent comes from a settings file, or is the default one.
    ///
    /// Remedy: change `[agents.NAME]` in `toolyard.toml`.
    #[error("agent `{0}` is not kept in the store")]
    ReadOnly(String),
    /// The name of an agent has other characters, or is too long.
    ///
    /// Remedy: choose a name such as `research-assistant`.
    #[error("`{0}` cannot be the name of an agent: 1 to 64 ASCII letters, digits, `-` and `_` are allowed")]
    InvalidName(String),
    /// The store with the agents failed.
    ///
    /// Remedy: check the store with `toolyard store check`.
    #[error("failed to access the stored agents: {0}")]
    Storage(#[from] StorageError),
    /// The agent's model is not available.
    #[error(transparent)]
    Models(#[from] ModelsError),
}

/// Why a conversation cannot be continued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The name cannot be that of a conversation.
    #[error(transparent)]
    Name(#[from] InvalidConversationName),
    /// The store failed while the conversation was read.
    ///
    /// Remedy: check the store with `toolyard store check`.
    #[error("failed to read the conversation: {0}")]
    Storage(#[from] StorageError),
}

/// The configured agents and what they share. Cheap to clone.
#[derive(Clone)]
pub struct Agents {
    pub(crate) hub: Arc<ToolHub>,
    pub(crate) settings: Arc<BTreeMap<String, AgentSettings>>,
    pub(crate) stored: Arc<StoredAgents>,
    pub(crate) approval_rules: ApprovalRules,
    /// How long a tool call may go without progress, if set.
    pub(crate) tool_timeout: Option<Duration>,
    pub(crate) models: Models,
    pub(crate) log: Arc<dyn RunLog>,
    pub(crate) approvals: Arc<dyn Approvals>,
    pub(crate) conversations: Arc<dyn Conversations>,
    pub(crate) result_shapes: Option<Arc<dyn ResultShapes>>,
    pub(crate) argument_examples: Option<Arc<dyn ArgumentExamples>>,
    pub(crate) owner: String,
}

/// Where agents keep their runs and what they learn.
pub(crate) struct AgentStores {
    definitions: Arc<dyn AgentDefinitions>,
    log: Arc<dyn RunLog>,
    approvals: Arc<dyn Approvals>,
    conversations: Arc<dyn Conversations>,
    result_shapes: Option<Arc<dyn ResultShapes>>,
    argument_examples: Option<Arc<dyn ArgumentExamples>>,
}

impl AgentStores {
    #[cfg(feature = "store")]
    pub(crate) fn of_store(store: &toolyard_store::Store) -> Self {
        Self {
            definitions: Arc::new(store.clone()),
            log: Arc::new(store.clone()),
            approvals: Arc::new(store.clone()),
            conversations: Arc::new(store.clone()),
            result_shapes: Some(Arc::new(store.clone())),
            argument_examples: Some(Arc::new(store.clone())),
        }
    }

    pub(crate) fn in_memory() -> Self {
        let log = Arc::new(MemoryRunLog::default());
        Self {
            definitions: Arc::new(MemoryAgentDefinitions::default()),
            log: Arc::clone(&log) as _,
            approvals: log,
            conversations: Arc::new(MemoryConversations::default()),
            result_shapes: None,
            argument_examples: None,
        }
    }
}

impl Agents {
    pub(crate) fn new(
        settings: &Settings,
        hub: &Arc<ToolHub>,
        models: Models,
        stores: AgentStores,
        owner: String,
    ) -> Self {
        let AgentStores { definitions, log, approvals, conversations, result_shapes, argument_examples } =
            stores;
        Self {
            hub: Arc::clone(hub),
            settings: Arc::new(settings.agents.clone()),
            stored: Arc::new(StoredAgents::new(definitions)),
            approval_rules: settings.approvals.rules(),
            tool_timeout: settings.call.timeout.map(|timeout| timeout.0),
            models,
            log,
            approvals,
            conversations,
            result_shapes,
            argument_examples,
            owner,
        }
    }

    /// All names: those of the settings, those of the store as far as they were read, and the default agent, which exists
    /// without settings.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.settings.keys().cloned().collect();
        let is_other = |name: &&String| !self.settings.contains_key(name.as_str());
        names.extend(self.stored.current().keys().filter(is_other).cloned());
        if !names.iter().any(|name| name == DEFAULT_AGENT) {
            names.push(DEFAULT_AGENT.to_owned());
        }
        names
    }

    /// Where an agent is defined; `None` if there is none of this name. The settings precede the store.
    pub fn origin(&self, name: &str) -> Option<AgentOrigin> {
        if self.settings.contains_key(name) {
            return Some(AgentOrigin::Settings);
        }
        if self.stored.current().contains_key(name) {
            return Some(AgentOrigin::Store);
        }
        (name == DEFAULT_AGENT).then_some(AgentOrigin::BuiltIn)
    }

    /// The settings of an agent; those of the default agent if it has none.
    pub fn agent_settings(&self, name: &str) -> Result<AgentSettings, AgentsError> {
        let stored = self.stored.current();
        match self.settings.get(name).or_else(|| stored.get(name)) {
            Some(settings) => Ok(settings.clone()),
            None if name == DEFAULT_AGENT => Ok(AgentSettings::default()),
            None => Err(AgentsError::Unknown { name: name.to_owned(), known: self.names() }),
        }
    }

    /// Adds an agent to the store, for this and all other processes. `by` is who does it, for the audit log. Without a durable
    /// store, the agent lives as long as this `Toolyard`.
    pub async fn add(&self, name: &str, settings: &AgentSettings, by: &str) -> Result<(), AgentsError> {
        self.stored.refresh_now().await?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_name) {
            return Err(AgentsError::InvalidName(name.to_owned()));
        }
        // The default agent can be replaced by one of the store.
        if matches!(self.origin(name), Some(AgentOrigin::Settings | AgentOrigin::Store)) {
            return Err(AgentsError::Exists(name.to_owned()));
        }
        if !self.stored.add(name, settings, by).await? {
            return Err(AgentsError::Exists(name.to_owned()));
        }
        Ok(())
    }

    /// Replaces the settings of an agent in the store. Runs under way keep those they began with.
    pub async fn replace(&self, name: &str, settings: &AgentSettings, by: &str) -> Result<(), AgentsError> {
        self.require_stored(name).await?;
        if !self.stored.replace(name, settings, by).await? {
            return Err(self.unknown(name));
        }
        Ok(())
    }

    /// Removes an agent from the store. Runs under way go on.
    pub async fn remove(&self, name: &str, by: &str) -> Result<(), AgentsError> {
        self.require_stored(name).await?;
        if !self.stored.remove(name, by).await? {
            return Err(self.unknown(name));
        }
        Ok(())
    }

    /// Reads the agents in the store, which other processes may have changed, unless that was done less than a second ago.
    pub async fn refresh(&self) {
        self.stored.refresh().await;
    }

    async fn require_stored(&self, name: &str) -> Result<(), AgentsError> {
        self.stored.refresh_now().await?;
        match self.origin(name) {
            Some(AgentOrigin::Store) => Ok(()),
            Some(_) => Err(AgentsError::ReadOnly(name.to_owned())),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> AgentsError {
        AgentsError::Unknown { name: name.to_owned(), known: self.names() }
    }

    /// An agent's configuration.
    pub fn config(&self, name: &str) -> Result<AgentConfig, AgentsError> {
        let config = match self.origin(name) {
            Some(AgentOrigin::BuiltIn) => AgentConfig::new(name),
            _ => self.agent_settings(name)?.config(name),
        };
        Ok(AgentConfig { tool_timeout: self.tool_timeout, ..config })
    }

    /// The agent of this name, with its configured model unless another is given.
    pub fn agent(&self, name: &str, model: Option<&str>) -> Result<Agent, AgentsError> {
        let agent = Agent::new(self.agent_parts(name, model)?);
        Ok(agent.with_conversations(Arc::clone(&self.conversations)))
    }

    pub(crate) fn agent_parts(&self, name: &str, model: Option<&str>) -> Result<AgentParts, AgentsError> {
        let config = self.config(name)?;
        let model = self.models.get(model.or(config.model.as_deref()))?;
        Ok(AgentParts {
            config: Arc::new(config),
            hub: Arc::clone(&self.hub),
            model,
            log: Arc::clone(&self.log),
            approvals: Arc::clone(&self.approvals),
            rules: self.approval_rules.clone(),
            result_shapes: self.result_shapes.clone(),
            argument_examples: self.argument_examples.clone(),
            counter: Arc::new(O200k),
            owner: self.owner.clone(),
        })
    }

    /// The arguments of successful calls that plans of an agent are shown as examples, for the user of this machine.
    pub async fn argument_examples(&self, agent: &AgentConfig) -> Vec<ArgumentExample> {
        let (owner, limit) = ("", usize::MAX);
        match &self.argument_examples {
            Some(examples) => examples.of_owner(&agent.learning_scope(owner), limit).await,
            None => Vec::new(),
        }
    }

    /// The name of the model that an agent uses: the given one, else the agent's own, else the default.
    pub fn model_name(&self, name: &str, model: Option<&str>) -> Result<String, AgentsError> {
        Ok(self.models.resolve_name(model.or(self.config(name)?.model.as_deref()))?)
    }

    /// Continues a conversation of the user of this machine, or begins one. Embedders that serve several users give each an
    /// owner of their own: [`Chat::open`] with [`Agents::conversations`].
    pub async fn chat(&self, conversation: &str) -> Result<Chat, ChatError> {
        let id = ConversationId::new("", conversation)?;
        Ok(Chat::open(Arc::clone(&self.conversations), Arc::clone(&self.log), id).await?)
    }

    /// The store of conversations.
    pub fn conversations(&self) -> &Arc<dyn Conversations> {
        &self.conversations
    }

    /// The models.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The run log.
    pub fn log(&self) -> &Arc<dyn RunLog> {
        &self.log
    }

    /// The store of pending approvals.
    pub fn approvals(&self) -> &Arc<dyn Approvals> {
        &self.approvals
    }

    /// The name under which this process claims runs.
    pub fn owner(&self) -> &str {
        &self.owner
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agents")
            .field("names", &self.names())
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// Agents that are replaced when the settings are reloaded. Runs keep the agent they began with.
#[derive(Debug)]
pub(crate) struct ReloadableAgents(ArcSwap<Agents>);

impl ReloadableAgents {
    pub(crate) fn new(agents: Agents) -> Self {
        Self(ArcSwap::from_pointee(agents))
    }

    pub(crate) fn current(&self) -> Arc<Agents> {
        self.0.load_full()
    }

    pub(crate) fn replace(&self, agents: Agents) {
        self.0.store(Arc::new(agents));
    }
}
