//! Starts servers whose tools are not known yet, except those that recently failed slowly.

use std::{
    cell::RefCell,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;
use toolyard::Toolyard;
use toolyard_mcp_client::{ConnectError, ManagedServer, McpManager, ServerState, ToolOffer};

use super::{
    describe_failure,
    failure_cache::{ServerFailure, ServerFailures},
    pending_servers::PendingServers,
    tool_names, tools_not_offered,
};
use crate::{
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize, progress::with_live_progress},
};

const MAX_CONCURRENT_STARTS: usize = 8;
/// How long a list waits for the start of each server. A first start that downloads packages takes longer.
const MAX_LISTING_WAIT: Duration = Duration::from_secs(10);

struct StartOutcome {
    server: Arc<ManagedServer>,
    error: Option<ConnectError>,
    duration: Duration,
}

impl StartOutcome {
    fn failure(&self) -> Option<ServerFailure> {
        self.error.as_ref().map(|error| {
            ServerFailure::new(&describe_failure(error, &self.server.config().id), self.duration)
        })
    }
}

/// Starts servers whose tools are not known yet, and reports their tools or failures. If the user interrupts it, the command
/// ends, and the servers that were still starting are skipped for a while.
pub(crate) async fn discover(
    toolyard: &Toolyard,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    discover_within(Duration::MAX, toolyard, context, output).await
}

/// Like [`discover`], for a list of what is known: names servers that take long to start instead of waiting for them.
pub(crate) async fn discover_for_list(
    toolyard: &Toolyard,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    discover_within(MAX_LISTING_WAIT, toolyard, context, output).await
}

async fn discover_within(
    max_wait: Duration,
    toolyard: &Toolyard,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let Some(manager) = toolyard.servers() else { return Ok(()) };
    let mut failures = ServerFailures::read(context);
    let undiscovered =
        manager.servers().into_iter().filter(|server| server.state() == ServerState::Configured);
    let is_skipped =
        |server: &Arc<ManagedServer>| failures.get(server.config()).is_some_and(ServerFailure::is_skipped);
    let (skipped, selected): (Vec<_>, Vec<_>) = undiscovered.partition(is_skipped);
    let mut skipped: Vec<String> = skipped.iter().map(|server| server.config().id.to_string()).collect();
    if !selected.is_empty() {
        let started = Instant::now();
        let (outcomes, result) = start(&selected, manager, max_wait).await;
        for outcome in &outcomes {
            skipped.extend(report(outcome, &failures, output));
            failures.record(outcome.server.config(), outcome.failure());
        }
        let unfinished = unfinished(&selected, &outcomes);
        // A start that takes long for a list is no failure: other commands wait for it.
        if result.is_err() {
            for server in &unfinished {
                let failure = ServerFailure::new("interrupted while starting", started.elapsed());
                failures.record(server.config(), Some(failure));
            }
        }
        failures.write(context);
        result?;
        if !unfinished.is_empty() {
            output.message(&still_starting_note(&unfinished, max_wait));
        }
    }
    if !skipped.is_empty() {
        skipped.sort();
        output.message(&format!(
            "note: skipped {}: {}. Details: toolyard servers list; retry: toolyard servers test",
            pluralize(skipped.len(), "unavailable server"),
            skipped.join(", ")
        ));
    }
    Ok(())
}

/// Names the servers whose tools are not known yet, for commands that start none, and those of them that failed.
pub(crate) fn note_undiscovered(toolyard: &Toolyard, context: &CliContext, output: &Output) {
    let servers = toolyard.servers().map(|manager| manager.servers()).unwrap_or_default();
    let failures = ServerFailures::read(context);
    let (mut failed, mut not_started) = (Vec::new(), Vec::new());
    for server in servers.iter().filter(|server| server.state() == ServerState::Configured) {
        let group = if failures.get(server.config()).is_some() { &mut failed } else { &mut not_started };
        group.push(server.config().id.as_str());
    }
    if !not_started.is_empty() {
        output.message(&format!(
            "note: the tools of {} are not known yet: {}. Start them once: toolyard servers test",
            pluralize(not_started.len(), "server"),
            not_started.join(", ")
        ));
    }
    if !failed.is_empty() {
        output.message(&format!(
            "note: {} failed to start: {}. Details: toolyard servers list; retry: toolyard servers test",
            pluralize(failed.len(), "server"),
            failed.join(", ")
        ));
    }
}

/// Starts servers concurrently, and waits for each of them for `max_wait` at most. Servers that did not answer by then have no
/// outcome. Fails if the user interrupts; the outcomes until then are returned, too.
async fn start(
    servers: &[Arc<ManagedServer>],
    manager: &McpManager,
    max_wait: Duration,
) -> (Vec<StartOutcome>, Result<(), CliError>) {
    let outcomes: RefCell<Vec<StartOutcome>> = RefCell::default();
    let pending = PendingServers::for_all(servers);
    let starts = stream::iter(servers).for_each_concurrent(MAX_CONCURRENT_STARTS, |server| {
        let (outcomes, pending) = (&outcomes, &pending);
        async move {
            let started = Instant::now();
            let connected = timeout(max_wait, manager.connect(server.config().id.as_str())).await;
            pending.remove(server);
            let Ok(connected) = connected else { return };
            let (server, error) = (Arc::clone(server), connected.err());
            outcomes.borrow_mut().push(StartOutcome { server, error, duration: started.elapsed() });
        }
    });
    let waited = with_live_progress(|| pending.names(), starts).await;
    (outcomes.into_inner(), waited)
}

/// The servers that neither answered nor failed. A start that took too long goes on while others are awaited.
fn unfinished<'s>(
    servers: &'s [Arc<ManagedServer>],
    outcomes: &[StartOutcome],
) -> Vec<&'s Arc<ManagedServer>> {
    let is_unfinished = |server: &&Arc<ManagedServer>| {
        !server.has_known_tools() && !outcomes.iter().any(|outcome| Arc::ptr_eq(&outcome.server, server))
    };
    servers.iter().filter(is_unfinished).collect()
}

fn still_starting_note(servers: &[&Arc<ManagedServer>], max_wait: Duration) -> String {
    let names: Vec<&str> = servers.iter().map(|server| server.config().id.as_str()).collect();
    format!(
        "note: still starting after {} s: {}. To wait for a first start: toolyard servers test {}",
        max_wait.as_secs(),
        names.join(", "),
        names.join(" ")
    )
}

/// Reports an outcome. A failure that was reported before is returned as the server's name instead.
fn report(outcome: &StartOutcome, failures: &ServerFailures, output: &Output) -> Option<String> {
    let config = outcome.server.config();
    let Some(failure) = outcome.failure() else {
        output.message(&new_tools_note(&outcome.server));
        return None;
    };
    if failures.get(config).is_some_and(|known| known.reason == failure.reason) {
        return Some(config.id.to_string());
    }
    output.message(&format!("note: {} failed to start: {}", config.id, failure.reason));
    None
}

fn new_tools_note(server: &ManagedServer) -> String {
    let (id, approvals) = (&server.config().id, server.tool_approvals());
    let tools = match tool_names(server, &approvals, ToolOffer::Offered).as_slice() {
        [] => "no tools enabled".to_owned(),
        names => format!("{} enabled: {}", pluralize(names.len(), "tool"), names.join(", ")),
    };
    let mut concerns = tools_not_offered(server, &approvals);
    concerns.extend(approvals.problem_summary());
    if let Some(last) = concerns.last_mut() {
        *last = format!("{last}: toolyard servers show {id}");
    }
    let concerns: String = concerns.iter().map(|concern| format!("; {concern}")).collect();
    format!("note: new server {id}, {tools}{concerns}")
}

#[cfg(test)]
mod tests {
    use toolyard_mcp_client::config::McpServerConfig;

    use super::*;

    #[tokio::test]
    async fn a_server_that_starts_slowly_is_named_and_not_awaited() {
        // It reads requests until its input ends, and answers none.
        let silent = ["-c", "while read -r line; do :; done"];
        let builder = Toolyard::builder()
            .server(McpServerConfig::stdio("slow", "sh", silent))
            .server(McpServerConfig::stdio("missing", "no-such-program-here", [""; 0]));
        let toolyard = builder.environment(std::env::vars()).build().await.unwrap();
        let manager = toolyard.servers().unwrap();
        let servers = manager.servers();
        let (outcomes, waited) = start(&servers, manager, Duration::from_secs(1)).await;
        assert!(waited.is_ok());
        let failed: Vec<&str> = outcomes.iter().map(|outcome| outcome.server.config().id.as_str()).collect();
        assert_eq!(failed, ["missing"]);
        assert_eq!(
            still_starting_note(&unfinished(&servers, &outcomes), MAX_LISTING_WAIT),
            "note: still starting after 10 s: slow. To wait for a first start: toolyard servers test slow"
        );
        toolyard.close().await.unwrap();
    }
}
