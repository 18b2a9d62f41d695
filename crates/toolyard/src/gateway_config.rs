//! The configuration of a gateway that serves the tools, servers and agents of a [`Toolyard`].

use std::{sync::Arc, time::Duration};

use toolyard_agent::AgentParts;
use toolyard_core::BoxFuture;
use toolyard_gateway::{
    AgentLookupError, AgentProvider, AgentService, AgentServiceConfig, GatewayConfig, HttpApi, HttpApiConfig,
};
use toolyard_hub::Profile;

use crate::{AgentsError, ModelsError, Toolyard, agents::ReloadableAgents};

/// Lease of a run: if it is not renewed in this time, another process takes the run over.
const RUN_LEASE: Duration = Duration::from_secs(30);

/// Whether clients of the HTTP API may approve tool calls of their own runs, and change agents. If not, that is left to who
/// operates the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteApproval {
    /// Clients may approve calls of their own runs and change agents.
    Allowed,
    /// Only the operator may.
    Denied,
}

impl From<bool> for RemoteApproval {
    fn from(is_allowed: bool) -> Self {
        if is_allowed { Self::Allowed } else { Self::Denied }
    }
}

/// The HTTP API of a [`Toolyard`] for an application with a router of its own; made by [`Toolyard::http_api`].
#[derive(Debug)]
#[must_use]
pub struct HttpApiBuilder<'a> {
    toolyard: &'a Toolyard,
    agents: Option<RemoteApproval>,
}

impl HttpApiBuilder<'_> {
    /// Also offers the agents.
    pub fn agents(mut self, approval: RemoteApproval) -> Self {
        self.agents = Some(approval);
        self
    }

    /// The API. It authenticates nobody: the application's layer must insert
    /// [`AuthenticatedCaller`](toolyard_gateway::AuthenticatedCaller) into each request; otherwise all requests share one identity.
    pub fn build(self) -> HttpApi {
        let Self { toolyard, agents } = self;
        let mut gateway = toolyard.gateway_config();
        gateway.agents = agents.map(|approval| toolyard.agents_of_gateway(approval));
        toolyard.http_api_of(&gateway, agents.unwrap_or(RemoteApproval::Denied))
    }
}

impl Toolyard {
    /// The HTTP API, to be mounted in an application.
    pub fn http_api(&self) -> HttpApiBuilder<'_> {
        HttpApiBuilder { toolyard: self, agents: None }
    }

    pub(crate) fn agents_of_gateway(&self, approval: RemoteApproval) -> AgentService {
        AgentService::new(self.agent_service_config(Profile::default(), approval, RUN_LEASE))
    }

    pub(crate) fn http_api_of(&self, gateway: &GatewayConfig, approval: RemoteApproval) -> HttpApi {
        HttpApi::new(HttpApiConfig {
            agents: gateway.agents.clone(),
            main_tools: Some(gateway.main_tools()),
            ..self.http_api_config(approval)
        })
    }

    /// The configuration of a gateway to all tools and servers, without profiles and agents.
    pub fn gateway_config(&self) -> GatewayConfig {
        let mut config = GatewayConfig::new(Arc::clone(self.hub()));
        config.servers = self.servers().cloned();
        if !self.content.is_empty() {
            config.content.push(Arc::clone(&self.content) as _);
        }
        config
    }

    /// What the HTTP API of a gateway serves, without agents and tool calls ([`GatewayConfig::main_tools`]).
    #[doc(hidden)]
    pub fn http_api_config(&self, approval: RemoteApproval) -> HttpApiConfig {
        HttpApiConfig {
            hub: Some(Arc::clone(self.hub())),
            main_tools: None,
            servers: self.servers().cloned(),
            admin: Some(Arc::new(self.admin())),
            settings: None,
            clients_may_change_agents: approval == RemoteApproval::Allowed,
            ..HttpApiConfig::default()
        }
    }

    /// The agents for clients of a gateway, limited to the tools of a profile, without a limit of runs and without a cluster.
    /// Another process takes a run over once this one gave no sign of life for `lease`.
    #[doc(hidden)]
    pub fn agent_service_config(
        &self,
        profile: Profile,
        approval: RemoteApproval,
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
            clients_may_approve: approval == RemoteApproval::Allowed,
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
