//! Logs every state change of a server while serving.

use std::{collections::BTreeMap, time::Duration};

use toolyard::Toolyard;
use toolyard_core::SourceId;
use toolyard_mcp_client::{ManagedServer, ServerState};

use crate::terminal::{logging::SERVERS_TARGET, pluralize};

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The state of a server when it was looked at last.
struct LoggedState {
    /// The number of known tools of a server that was not running.
    stopped_with: Option<usize>,
    description: String,
}

/// Logs state changes. Never completes.
pub(super) async fn watch(toolyard: &Toolyard) {
    let mut last_states: BTreeMap<SourceId, LoggedState> = BTreeMap::new();
    loop {
        for server in toolyard.servers().iter().flat_map(|manager| manager.servers()) {
            let id = &server.config().id;
            let known_tools = server.tool_approvals().approved().len();
            // Most of many servers are not running, and describing each of them four times a second would cost.
            let stopped_with = matches!(server.state(), ServerState::Stopped).then_some(known_tools);
            if stopped_with.is_some()
                && last_states.get(id).is_some_and(|last| last.stopped_with == stopped_with)
            {
                continue;
            }
            let state = describe(&server);
            let logged = LoggedState { stopped_with, description: state.clone() };
            let previous = last_states.insert(id.clone(), logged).map(|last| last.description);
            let is_initial =
                previous.is_none() && matches!(server.state(), ServerState::Stopped | ServerState::Disabled);
            if previous.as_deref() != Some(&state) && !is_initial {
                match server.state() {
                    ServerState::Down { .. } | ServerState::Degraded { .. } => {
                        tracing::warn!(target: SERVERS_TARGET, "{id}: {state}");
                    }
                    _ => tracing::info!(target: SERVERS_TARGET, "{id}: {state}"),
                }
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn describe(server: &ManagedServer) -> String {
    let tools = pluralize(server.tool_approvals().approved().len(), "tool");
    match server.state() {
        ServerState::Disabled => "disabled".to_owned(),
        ServerState::Configured => "tools not known yet; retrying".to_owned(),
        ServerState::Stopped => format!("not running, {tools} known"),
        ServerState::Starting { .. } => "starting".to_owned(),
        ServerState::Ready { .. } => format!("ready, {tools}"),
        ServerState::Degraded { reason, .. } => format!("ready, {tools}, but {reason}"),
        ServerState::Down { reason, .. } => format!("down: {reason}"),
        _ => "unknown state".to_owned(),
    }
}
