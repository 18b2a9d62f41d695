//! The yard as an MCP server: a door for everybody, and one for each profile.

mod agent_pages;
mod ask_agent;
mod begun;
mod ears;
mod kept_results;
mod left_open;
mod live_runs;
mod openai;
mod openai_stream;
mod page_answer;
mod readiness;
mod run_events;
mod run_pages;
mod with_agents;

use std::{path::PathBuf, sync::Arc};

use toolyard_hub::surface::{HubService, Profile};
use toolyard_mcp::{
    bridge::{LocalSkills, Upstreams},
    server::{ContentService, Door, McpServer, ServerConfig},
};

pub use agent_pages::AgentPages;
pub use kept_results::KeptResults;
pub use left_open::LeftOpen;
pub use live_runs::{AgentDoor, AgentTerms};
use readiness::Behind;

use self::{ask_agent::AskAgent, with_agents::WithAgents};

use crate::Toolyard;

/// How the door wants to be used, in a sentence or two for a model.
const INSTRUCTIONS: &str = "Tools of several servers behind one door. Where a result says that only a part is shown, read the \
                            rest with read_result or at the linked address.";
/// What the ids of skills begin with.
const SKILLS: &str = "skill:";

/// What is served of a yard.
#[derive(Debug, Default)]
pub struct Served {
    /// What is at the main door.
    pub main: Profile,
    /// What is at doors of their own, by their names.
    pub others: Vec<Profile>,
    /// Folders of skills that are served as skills too.
    pub skill_folders: Vec<PathBuf>,
    /// Whether every call is journalled.
    pub journal: bool,
    /// The agents that clients of the main door may ask, on terms that are no wider than `main`.
    pub agents: Option<AgentDoor>,
}

/// A server of a yard. From now on its servers are looked after: those that nobody has seen yet are started once, and those
/// that are down are tried again.
pub fn server(yard: &Toolyard, mut config: ServerConfig, served: Served) -> McpServer {
    config.instructions.get_or_insert_with(|| INSTRUCTIONS.to_owned());
    let common = Common {
        results: Arc::new(KeptResults::new(Arc::clone(yard.hub().results()))),
        skills: match served.skill_folders.as_slice() {
            [] => None,
            folders => Some(Arc::new(LocalSkills::new(folders.to_vec()))),
        },
        journal: served.journal,
    };
    let server = McpServer::new(config, common.door(yard, served.main, served.agents));
    // Agents are held to what the main door offers, which a profile may be narrower than.
    served.others.into_iter().fold(server, |server, profile| {
        server.with_door(profile.name.to_string(), common.door(yard, profile, None))
    })
}

/// What doors have in common.
struct Common {
    results: Arc<KeptResults>,
    skills: Option<Arc<LocalSkills>>,
    journal: bool,
}

impl Common {
    fn door(&self, yard: &Toolyard, profile: Profile, agents: Option<AgentDoor>) -> Door {
        let content = profile.offers_content();
        let skills = self.skills.as_ref().filter(|_| content && profile.reaches(SKILLS));
        let upstreams = yard.shared_servers().map(|servers| {
            let reached = profile.clone();
            let upstreams = Upstreams::new(servers, move |id| reached.reaches(id.as_str()));
            Arc::new(skills.map(Arc::clone).into_iter().fold(upstreams, Upstreams::beside))
        });
        let service = self.service(yard, profile);
        let mut door = match agents {
            Some(agents) => Door::new(Arc::new(WithAgents::new(service, AskAgent::new(agents)))),
            None => Door::new(Arc::new(service)),
        };
        let results = Some(Arc::clone(&self.results) as Arc<dyn ContentService>);
        let skills = skills.map(|skills| Arc::clone(skills) as _);
        let behind = upstreams.as_ref().filter(|_| content).map(|upstreams| Arc::clone(upstreams) as _);
        door.content = [results, skills, behind].into_iter().flatten().collect();
        door.readiness = upstreams.map(|upstreams| Arc::new(Behind(upstreams)) as _);
        door
    }

    fn service(&self, yard: &Toolyard, profile: Profile) -> HubService {
        let service = HubService::new(yard.shared_hub(), profile);
        match yard.store().filter(|_| self.journal) {
            Some(store) => {
                service.with_journal(Arc::new(store.clone()), format!("serve-{}", std::process::id()))
            }
            None => service,
        }
    }
}
