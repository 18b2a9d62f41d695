//! The yard as an MCP server: a door for everybody, and one for each profile.

mod kept_results;
mod readiness;

use std::sync::Arc;

use toolyard_hub::surface::{HubService, Profile};
use toolyard_mcp::server::{Door, McpServer, Readiness, ServerConfig};

pub use kept_results::KeptResults;
pub use readiness::Discovery;

use crate::Toolyard;

/// How the door wants to be used, in a sentence or two for a model.
const INSTRUCTIONS: &str = "Tools of several servers behind one door. Where a result says that only a part is shown, read the \
                            rest with read_result or at the linked address.";

/// A server of a yard: one profile at the main door, others at doors of their own.
pub fn server(
    yard: &Toolyard,
    mut config: ServerConfig,
    main: Profile,
    others: Vec<Profile>,
    readiness: Option<Arc<dyn Readiness>>,
) -> McpServer {
    config.instructions.get_or_insert_with(|| INSTRUCTIONS.to_owned());
    let results = Arc::new(KeptResults::new(Arc::clone(yard.hub().results())));
    let door = |profile: Profile| {
        let mut door = Door::new(Arc::new(HubService::new(yard.shared_hub(), profile)));
        door.content.push(Arc::clone(&results) as _);
        door.readiness = readiness.clone();
        door
    };
    let server = McpServer::new(config, door(main));
    others
        .into_iter()
        .fold(server, |server, profile| server.with_door(profile.name.to_string(), door(profile)))
}
