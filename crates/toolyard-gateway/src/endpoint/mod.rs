//! Builds the MCP server of a gateway: one endpoint for the main profile, and one for each named profile.

mod stored_results;

use std::{fmt, path::PathBuf, sync::Arc};

use toolyard_core::{Journal, SourceId};
use toolyard_hub::{Profile, ToolHub};
use toolyard_mcp_client::McpManager;
use toolyard_mcp_server::{ContentService, Endpoint, McpServer, ServerConfig};

use self::stored_results::StoredResults;
use crate::{
    agents::{AgentService, AskAgent, WithAskAgent},
    bridge::{LocalSkills, ServerContentBridge},
    surface::{MainTools, hub_service},
};

const INSTRUCTIONS: &str = "Tools of several servers at one endpoint. Where a result says that only a part is shown, read the \
                            rest with read_result or at the linked address.";

/// What a gateway serves.
pub struct GatewayConfig {
    /// The tools.
    pub hub: Arc<ToolHub>,
    /// The upstream servers, whose prompts, resources and skills are served too.
    pub servers: Option<Arc<McpManager>>,
    /// The profile of the main endpoint.
    pub main_profile: Profile,
    /// Profiles with an endpoint of their own, under their names.
    pub profiles: Vec<Profile>,
    /// The one of `profiles` that offers the main profile in another form, to the gateway's own token only. For policies, it is the
    /// main profile.
    pub local_profile: Option<Arc<str>>,
    /// Folders of skills that are served as MCP skills.
    pub skill_folders: Vec<PathBuf>,
    /// Further prompts and resources, served by all endpoints with content. They come before those of servers.
    pub content: Vec<Arc<dyn ContentService>>,
    /// Where every tool call is journaled.
    pub journal: Option<Arc<dyn Journal>>,
    /// The agents that clients of the main endpoint can use. Their profile must be no wider than `main_profile`.
    pub agents: Option<AgentService>,
}

impl GatewayConfig {
    /// Serves all tools of a hub and nothing else.
    pub fn new(hub: Arc<ToolHub>) -> Self {
        Self {
            hub,
            servers: None,
            main_profile: Profile::default(),
            profiles: Vec::new(),
            local_profile: None,
            skill_folders: Vec::new(),
            content: Vec::new(),
            journal: None,
            agents: None,
        }
    }

    /// Builds the server. From now on the upstream servers are supervised: a server that was never reached is started once to
    /// read its tools, and a server that fails is restarted.
    pub fn build(self, mut config: ServerConfig) -> McpServer {
        config.telemetry = config.telemetry.or_else(|| self.hub.telemetry().cloned());
        config.instructions.get_or_insert_with(|| INSTRUCTIONS.to_owned());
        let builder = self.endpoint_builder();
        let server = McpServer::new(config, builder.endpoint(self.main_profile, self.agents));
        // An agent may use all tools of the main profile. Clients of another profile must not reach them through an agent.
        self.profiles.into_iter().fold(server, |server, profile| {
            server.with_endpoint(profile.name.to_string(), builder.endpoint(profile, None))
        })
    }

    /// Replaces the endpoints of a running server whose profiles differ from the `previous` ones, or all of them. Calls in
    /// flight finish at the endpoint they began at.
    pub fn update(self, server: &McpServer, previous: &[Profile], replaces_all: bool) {
        let builder = self.endpoint_builder();
        let is_new = |profile: &Profile| replaces_all || !previous.contains(profile);
        let removed: Vec<&Profile> = previous
            .iter()
            .filter(|old| self.profiles.iter().all(|profile| profile.name != old.name))
            .collect();
        removed.into_iter().for_each(|profile| server.remove_endpoint(&profile.name));
        if is_new(&self.main_profile) {
            server.set_endpoint("", builder.endpoint(self.main_profile, self.agents));
        }
        for profile in self.profiles.into_iter().filter(is_new) {
            server.set_endpoint(profile.name.to_string(), builder.endpoint(profile, None));
        }
    }

    /// The tools of the main endpoint for the HTTP API.
    pub fn main_tools(&self) -> MainTools {
        MainTools::new(Arc::clone(&self.hub), self.journal.clone(), self.main_profile.clone())
    }

    fn endpoint_builder(&self) -> EndpointBuilder {
        let skill_folders = &self.skill_folders;
        EndpointBuilder {
            results: Arc::new(StoredResults(Arc::clone(self.hub.results()))),
            skills: (!skill_folders.is_empty()).then(|| Arc::new(LocalSkills::new(skill_folders.clone()))),
            hub: Arc::clone(&self.hub),
            servers: self.servers.clone(),
            journal: self.journal.clone(),
            content: self.content.clone(),
            local_profile: self.local_profile.clone(),
        }
    }
}

impl fmt::Debug for GatewayConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayConfig")
            .field("main_profile", &self.main_profile)
            .field("profiles", &self.profiles)
            .finish_non_exhaustive()
    }
}

/// What all endpoints share.
struct EndpointBuilder {
    hub: Arc<ToolHub>,
    servers: Option<Arc<McpManager>>,
    journal: Option<Arc<dyn Journal>>,
    results: Arc<StoredResults>,
    content: Vec<Arc<dyn ContentService>>,
    skills: Option<Arc<LocalSkills>>,
    local_profile: Option<Arc<str>>,
}

impl EndpointBuilder {
    fn endpoint(&self, mut profile: Profile, agents: Option<AgentService>) -> Endpoint {
        let local_only = self.local_profile.as_ref() == Some(&profile.name);
        if local_only {
            // A rule for the main profile must not be evaded by another path to its tools.
            profile.name = Profile::default().name;
        }
        let includes_content = profile.includes_content();
        // Local skills are served all or none: `skill:` stands for all of them, as in the pattern `skill:*`.
        let skills = self
            .skills
            .clone()
            .filter(|_| includes_content && profile.includes_source(SourceId::SKILL_PREFIX));
        let bridge = self.servers.as_ref().map(|manager| {
            let profile = profile.clone();
            let filter = move |id: &SourceId| profile.includes_source(id.as_str());
            Arc::new(ServerContentBridge::new(Arc::clone(manager), filter, skills.clone()))
        });
        let mut tools = hub_service(&self.hub, self.journal.as_ref(), profile);
        if let Some(servers) = &self.servers {
            tools = tools.with_instructions_of(Arc::clone(servers));
        }
        let mut endpoint = match agents {
            Some(agents) => Endpoint::new(Arc::new(WithAskAgent::new(tools, AskAgent::new(agents)))),
            None => Endpoint::new(Arc::new(tools)),
        };
        let results = Some(Arc::clone(&self.results) as Arc<dyn ContentService>);
        let skills = skills.map(|skills| skills as _);
        let own = self.content.iter().filter(|_| includes_content).cloned();
        let of_servers = bridge.clone().filter(|_| includes_content).map(|bridge| bridge as _);
        endpoint.content = [results, skills].into_iter().flatten().chain(own).chain(of_servers).collect();
        endpoint.readiness = bridge.map(|bridge| bridge as _);
        endpoint.local_only = local_only;
        endpoint
    }
}
