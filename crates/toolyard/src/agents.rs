//! The configured agents and what they share.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use toolyard_agent::{
    Agent, AgentConfig, AgentParts, ApprovalRules, Chat, DEFAULT_AGENT, MemoryConversations, MemoryRunLog,
    O200k,
};
use toolyard_core::{
    Approvals, ArgumentExample, ArgumentExamples, ConversationId, Conversations, InvalidConversationName,
    ResultShapes, RunLog, StorageError,
};
use toolyard_hub::ToolHub;

use crate::{Models, ModelsError, Settings, settings::AgentSettings};

/// Why an agent is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsError {
    /// No agent has this name.
    #[error("agent `{name}` does not exist; known agents: {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Names of the agents that exist.
        known: Vec<String>,
    },
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
    /// The conversation cannot be read.
    #[error("failed to read the conversation: {0}")]
    Storage(#[from] StorageError),
}

/// The configured agents and what they share. Cheap to clone.
#[derive(Clone)]
pub struct Agents {
    pub(crate) hub: Arc<ToolHub>,
    pub(crate) settings: Arc<BTreeMap<String, AgentSettings>>,
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
        let AgentStores { log, approvals, conversations, result_shapes, argument_examples } = stores;
        Self {
            hub: Arc::clone(hub),
            settings: Arc::new(settings.agents.clone()),
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

    /// All names; the default agent exists without settings.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.settings.keys().cloned().collect();
        if !self.settings.contains_key(DEFAULT_AGENT) {
            names.push(DEFAULT_AGENT.to_owned());
        }
        names
    }

    /// An agent's configuration.
    pub fn config(&self, name: &str) -> Result<AgentConfig, AgentsError> {
        let config = match self.settings.get(name) {
            Some(settings) => settings.config(name),
            None if name == DEFAULT_AGENT => AgentConfig::new(name),
            None => return Err(AgentsError::Unknown { name: name.to_owned(), known: self.names() }),
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
