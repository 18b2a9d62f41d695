//! Logs every state change of a server while serving.

use std::{collections::BTreeMap, time::Duration};

use toolyard::Toolyard;
use toolyard_core::SourceId;
use toolyard_mcp_client::{ManagedServer, ServerState};

use crate::terminal::{logging::SERVERS_TARGET, pluralize};

const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// If more servers become ready at once, they are counted instead of named.
const MAX_NAMED_SERVERS: usize = 10;

/// The state of a server when it was looked at last.
struct LoggedState {
    /// The number of known tools of a server that was not running.
    stopped_with: Option<usize>,
    description: String,
}

/// A server that became ready.
struct ReadyServer {
    line: String,
    tools: usize,
}

/// Logs state changes. Never completes.
pub(super) async fn watch(toolyard: &Toolyard) {
    let mut last_states: BTreeMap<SourceId, LoggedState> = BTreeMap::new();
    loop {
        let mut ready = Vec::new();
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
                    ServerState::Configured | ServerState::Starting { .. } => {
                        tracing::debug!(target: SERVERS_TARGET, "{id}: {state}");
                    }
                    ServerState::Ready { .. } => {
                        ready.push(ReadyServer { line: format!("{id}: {state}"), tools: known_tools });
                    }
                    _ => tracing::info!(target: SERVERS_TARGET, "{id}: {state}"),
                }
            }
        }
        log_ready(&ready);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn log_ready(servers: &[ReadyServer]) {
    let summary = ready_summary(servers);
    for ReadyServer { line, .. } in servers {
        match summary {
            Some(_) => tracing::debug!(target: SERVERS_TARGET, "{line}"),
            None => tracing::info!(target: SERVERS_TARGET, "{line}"),
        }
    }
    if let Some(summary) = summary {
        tracing::info!(target: SERVERS_TARGET, "{summary}");
    }
}

/// One line for many servers.
fn ready_summary(servers: &[ReadyServer]) -> Option<String> {
    let tools: usize = servers.iter().map(|server| server.tools).sum();
    let summary = || format!("{} ready, {}", pluralize(servers.len(), "server"), pluralize(tools, "tool"));
    (servers.len() > MAX_NAMED_SERVERS).then(summary)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_servers_that_become_ready_are_one_line() {
        let server = |number| ReadyServer { line: format!("server{number}: ready, 20 tools"), tools: 20 };
        let servers: Vec<ReadyServer> = (0..500).map(server).collect();
        assert_eq!(ready_summary(&servers).as_deref(), Some("500 servers ready, 10000 tools"));
        assert_eq!(ready_summary(&servers[..MAX_NAMED_SERVERS]), None);
    }
}
