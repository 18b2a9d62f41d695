//! The configuration of a gateway that serves the tools, servers and agents of a [`Toolyard`].

use std::{sync::Arc, time::Duration};

use toolyard_agent::AgentParts;
use toolyard_core::BoxFuture;
use toolyard_gateway::{
    AgentLookupError, AgentProvider, AgentService, AgentServiceConfig, GatewayConfig, HttpApiConfig,
};
use toolyard_hub::Profile;

use crate::{AgentsError, ModelsError, Toolyard, agents::ReloadableAgents};

impl Toolyard {
    /// The configuration of a gateway to all tools and servers, without profiles and agents.
    pub fn gateway_config(&self) -> GatewayConfig {
        let mut config = GatewayConfig::new(self.shared_hub());
        config.servers = self.shared_servers();
        if !self.content.is_empty() {
            config.content.push(Arc::clone(&self.content) as _);
        }
        config
    }

    /// What the HTTP API of a gateway serves, without agents ([`Toolyard::agent_service`]) and tool calls
    /// ([`GatewayConfig::main_tools`]). `clients_may_change_agents` lets HTTP clients add, change and remove agents in the store.
    pub fn http_api_config(&self, clients_may_change_agents: bool) -> HttpApiConfig {
        HttpApiConfig {
            hub: Some(self.shared_hub()),
            main_tools: None,
            servers: self.shared_servers(),
            admin: Some(Arc::new(self.admin())),
            settings: None,
            clients_may_change_agents,
            ..HttpApiConfig::default()
        }
    }

    /// The agents for clients of the gateway, limited to the tools of a profile. `clients_may_approve` lets HTTP clients
    /// approve tool calls of their own runs. Another process takes a run over once this one gave no sign of life for `lease`.
    pub fn agent_service(
        &self,
        profile: Profile,
        clients_may_approve: bool,
        lease: Duration,
    ) -> AgentService {
        AgentService::new(self.agent_service_config(profile, clients_may_approve, lease))
    }

    /// What [`Toolyard::agent_service`] is made of: without a limit of runs, and without a cluster.
    pub fn agent_service_config(
        &self,
        profile: Profile,
        clients_may_approve: bool,
        lease: Duration,
    ) -> AgentServiceConfig {
        let agents = self.agents();
        AgentServiceConfig {
            agents: Arc::clone(&self.reloadable.agents) as _,
            log: Arc::clone(agents.log()),
            approvals: Arc::clone(agents.approvals()),
            conversations: Arc::clone(agents.conversations()),
            owner: agents.owner().to_owned(),
            lease,
            profile,
            clients_may_approve,
            max_runs: usize::MAX,
            peers: None,
        }
    }
}

impl AgentProvider for ReloadableAgents {
    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.current().refresh().await })
    }

    fn names(&self) -> Vec<String> {
        self.current().names()
    }

    fn parts(&self, name: &str) -> Result<AgentParts, AgentLookupError> {
        self.current().agent_parts(name, None).map_err(|error| match error {
            AgentsError::Unknown { name, known } => AgentLookupError::Unknown { name, known },
            AgentsError::Models(ModelsError::NoDefault { .. }) => AgentLookupError::NoDefaultModel,
            other => AgentLookupError::Model(Box::new(other)),
        })
    }
}
