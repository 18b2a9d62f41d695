//! Configuration of an [`AgentService`](super::AgentService): the agents, where their runs are stored, what clients may do.

use std::{fmt, sync::Arc, time::Duration};

use toolyard_agent::AgentParts;
use toolyard_core::{Approvals, BoxFuture, Conversations, Peers, RunLog};
use toolyard_hub::Profile;

/// Knows the configured agents.
pub trait AgentProvider: Send + Sync + fmt::Debug {
    /// The names of all agents.
    fn names(&self) -> Vec<String>;

    /// Reads changes that other processes made to the agents. Called before agents are used; returns soon, also if the
    /// store does not answer.
    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What the agent of this name is built from.
    fn parts(&self, name: &str) -> Result<AgentParts, AgentLookupError>;
}

/// Why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentLookupError {
    /// No agent has this name, or the caller may not use it.
    ///
    /// Remedy: use one of the names in the message as `model`; `GET /v1/models` lists them.
    #[error("agent `{name}` does not exist; there are {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names of all agents.
        known: Vec<String>,
    },
    /// Several models are configured, and nothing says which one the agent uses.
    ///
    /// Remedy: set `default_model`, or `model` of the agent, in `toolyard.toml`.
    #[error("several models are configured, and nothing says which one this agent uses")]
    NoDefaultModel,
    /// The agent has no usable model.
    #[error(transparent)]
    Model(Box<dyn std::error::Error + Send + Sync>),
}

/// Configuration of an `AgentService`.
#[derive(Clone)]
pub struct AgentServiceConfig {
    /// The agents.
    pub agents: Arc<dyn AgentProvider>,
    /// Stores runs.
    pub log: Arc<dyn RunLog>,
    /// Stores approval requests.
    pub approvals: Arc<dyn Approvals>,
    /// Stores conversations.
    pub conversations: Arc<dyn Conversations>,
    /// Identifies this process as the owner of run leases.
    pub owner: String,
    /// How long a run stays with this process without a sign of life. Afterwards another process takes it over.
    pub lease: Duration,
    /// Agents see and call only the tools of this profile.
    pub profile: Profile,
    /// Whether HTTP clients may approve tool calls of agents. If not, they may only deny them: a client that starts runs
    /// and approves their calls decides alone.
    pub clients_may_approve: bool,
    /// How many runs this process drives before it leaves further background runs in the queue. Runs that a client waits for
    /// count, and always start. Queued runs are started by an [`OrphanAdopter`](super::OrphanAdopter).
    pub max_runs: usize,
    /// The other processes of a cluster, which take queued runs and follow the runs of this one. `owner` must then be a
    /// [`cluster_owner`](super::cluster_owner).
    pub peers: Option<Arc<dyn Peers>>,
}

impl fmt::Debug for AgentServiceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentServiceConfig").field("agents", &self.agents).finish_non_exhaustive()
    }
}
