//! Agents with a scripted model, for tests.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use toolyard_agent::{
    AgentConfig, AgentParts, ApprovalRules, DEFAULT_AGENT, MemoryConversations, MemoryRunLog, O200k,
};
use toolyard_core::{Approvals, Conversations, Peers, RunLog};
use toolyard_hub::{Profile, ToolHub};
use toolyard_model::{ScriptedModel, ToolCalling};
use toolyard_store::{Location, Store};

use super::{AgentLookupError, AgentProvider, AgentService, AgentServiceConfig};

/// Answers every question with "done".
#[derive(Clone)]
pub(super) struct TestAgents {
    pub(super) parts: AgentParts,
    pub(super) conversations: Arc<dyn Conversations>,
    pub(super) lease: Duration,
    pub(super) max_runs: usize,
    pub(super) peers: Option<Arc<dyn Peers>>,
    agents: BTreeMap<String, Arc<AgentConfig>>,
}

impl fmt::Debug for TestAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestAgents").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl TestAgents {
    pub(super) fn in_memory() -> Self {
        let log = Arc::new(MemoryRunLog::default());
        Self::new(Arc::clone(&log) as _, log)
    }

    pub(super) async fn in_folder(folder: &tempfile::TempDir) -> Self {
        let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
        Self::new(Arc::new(store.clone()), Arc::new(store))
    }

    pub(super) fn new(log: Arc<dyn RunLog>, approvals: Arc<dyn Approvals>) -> Self {
        let config = Arc::new(AgentConfig::new(DEFAULT_AGENT));
        let parts = AgentParts {
            config: Arc::clone(&config),
            hub: Arc::new(ToolHub::default()),
            model: Arc::new(ScriptedModel::with_replies(ToolCalling::Schema, [r#"{"answer": "done"}"#])),
            log,
            approvals,
            rules: ApprovalRules::default(),
            result_shapes: None,
            argument_examples: None,
            counter: Arc::new(O200k),
            owner: "test".to_owned(),
        };
        Self {
            parts,
            conversations: Arc::new(MemoryConversations::default()),
            lease: Duration::from_secs(30),
            max_runs: usize::MAX,
            peers: None,
            agents: BTreeMap::from([(DEFAULT_AGENT.to_owned(), config)]),
        }
    }

    pub(super) fn with_agent(mut self, name: &str, tools: &[&str]) -> Self {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        self.agents.insert(name.to_owned(), Arc::new(AgentConfig { tools, ..AgentConfig::new(name) }));
        self
    }

    /// The same agents in another process.
    pub(super) fn in_process(&self, owner: &str) -> Self {
        let mut process = self.clone();
        owner.clone_into(&mut process.parts.owner);
        process
    }

    pub(super) fn log(&self) -> &Arc<dyn RunLog> {
        &self.parts.log
    }

    pub(super) fn service(&self) -> AgentService {
        self.service_with(Profile::default(), false)
    }

    pub(super) fn service_with(&self, profile: Profile, clients_may_approve: bool) -> AgentService {
        AgentService::new(AgentServiceConfig {
            agents: Arc::new(self.clone()),
            log: Arc::clone(&self.parts.log),
            approvals: Arc::clone(&self.parts.approvals),
            conversations: Arc::clone(&self.conversations),
            owner: self.parts.owner.clone(),
            lease: self.lease,
            profile,
            clients_may_approve,
            max_runs: self.max_runs,
            peers: self.peers.clone(),
        })
    }
}

impl AgentProvider for TestAgents {
    fn names(&self) -> Vec<String> {
        self.agents.keys().cloned().collect()
    }

    fn parts(&self, name: &str) -> Result<AgentParts, AgentLookupError> {
        let unknown = || AgentLookupError::Unknown { name: name.to_owned(), known: self.names() };
        let config = Arc::clone(self.agents.get(name).ok_or_else(unknown)?);
        Ok(AgentParts { config, ..self.parts.clone() })
    }
}
