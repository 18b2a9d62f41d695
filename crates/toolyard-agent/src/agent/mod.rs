//! [`Agent`]: the configuration, hub, model and stores that a run needs.
//!
//! Starting and driving runs is implemented in [`crate::driver`].

mod approval_rules;
mod authority;
mod config;
mod error;
mod metered_model;
mod model_quota;
mod open_world;
mod watcher;

use std::{fmt, sync::Arc, time::Duration};

use toolyard_core::{Approvals, ArgumentExamples, Conversations, ResultShapes, RunLog};
use toolyard_hub::ToolHub;
use toolyard_model::Model;

pub use approval_rules::ApprovalRules;
pub(crate) use approval_rules::may_send_outside;
pub use authority::TakeOverError;
pub use config::{AgentCapabilities, AgentConfig, DEFAULT_AGENT, Language};
pub(crate) use config::{READ_RESULT, SEARCH_TOOLS};
pub use error::AgentError;
pub(crate) use metered_model::MeteredModel;
pub(crate) use model_quota::UncountedReply;
pub use open_world::OpenWorldRule;
pub(crate) use open_world::{Destination, consists_of_user_text, disclosed_sources};
pub use watcher::{ApprovalDecision, ApprovalRequest, NoWatcher, RunWatcher};

use crate::{MemoryConversations, Run, RunRequest, TokenCounter};

const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(30);
const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_mins(2);

/// What an agent is made of.
#[derive(Clone)]
pub struct AgentParts {
    /// Name, instructions and visible tools.
    pub config: Arc<AgentConfig>,
    /// The tools.
    pub hub: Arc<ToolHub>,
    /// The language model.
    pub model: Arc<dyn Model>,
    /// Stores the events of runs and the journal of their calls.
    pub log: Arc<dyn RunLog>,
    /// Stores approval requests.
    pub approvals: Arc<dyn Approvals>,
    /// Which calls need an approval.
    pub rules: ApprovalRules,
    /// Stores the shapes of tool results, so that plans can refer to their fields.
    pub result_shapes: Option<Arc<dyn ResultShapes>>,
    /// Stores the arguments of successful calls, as examples for plans of the same owner.
    pub argument_examples: Option<Arc<dyn ArgumentExamples>>,
    /// Counts the tokens of prompts.
    pub counter: Arc<dyn TokenCounter>,
    /// Identifies this process as the owner of run leases.
    pub owner: String,
}

impl fmt::Debug for AgentParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentParts")
            .field("config", &self.config)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("parts", &self.parts).finish_non_exhaustive()
    }
}

/// Plans, executes and answers requests as runs. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    pub(crate) parts: Arc<AgentParts>,
    pub(crate) lease_duration: Duration,
    pub(crate) tool_timeout: Duration,
    pub(crate) conversations: Arc<dyn Conversations>,
}

impl Agent {
    /// Creates an agent with the default lease duration (30 s), the tool timeout of its configuration, and conversations in
    /// memory.
    pub fn new(parts: AgentParts) -> Self {
        Self {
            tool_timeout: parts.config.tool_timeout.unwrap_or(DEFAULT_TOOL_TIMEOUT),
            parts: Arc::new(parts),
            lease_duration: DEFAULT_LEASE_DURATION,
            conversations: Arc::new(MemoryConversations::default()),
        }
    }

    /// Sets how long a run stays claimed by this process without a heartbeat.
    #[must_use]
    pub fn with_lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets how long a tool call may go without progress.
    #[must_use]
    pub fn with_tool_timeout(mut self, timeout: Duration) -> Self {
        self.tool_timeout = timeout;
        self
    }

    /// Sets where the conversations of its runs are stored.
    #[must_use]
    pub fn with_conversations(mut self, conversations: Arc<dyn Conversations>) -> Self {
        self.conversations = conversations;
        self
    }

    /// A request to answer a question, with the limits of the agent and its name as the caller.
    pub fn request(&self, question: impl Into<String>) -> RunRequest {
        let AgentConfig { name, limits, judge, review, .. } = &*self.parts.config;
        RunRequest {
            question: question.into(),
            agent: name.clone(),
            limits: limits.clone(),
            caller: name.as_str().into(),
            judge: *judge,
            review: *review,
            ..RunRequest::default()
        }
    }

    /// The agent as it drives this run: without a conversation, tools that need one are out of its reach.
    pub(crate) fn for_run(&self, run: &Run) -> Self {
        if run.request().is_some_and(|request| request.conversation.is_some()) {
            return self.clone();
        }
        let config = AgentConfig::clone(&self.parts.config).without_conversation(&self.parts.hub);
        let parts = Arc::new(AgentParts { config: Arc::new(config), ..AgentParts::clone(&self.parts) });
        Self { parts, ..self.clone() }
    }

    /// The parts the agent was created with.
    pub fn parts(&self) -> &AgentParts {
        &self.parts
    }
}
