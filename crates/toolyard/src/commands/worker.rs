//! `toolyard worker`: serves the tools of this machine to gateways over NATS.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{RwLock, watch},
    time::sleep,
};
use toolyard::{Toolyard, settings::ClusterSettings};
use toolyard_cluster::workers::{ServedTool, Worker};
use toolyard_core::{
    BoxFuture, CallContext, SourceId, SourceKind, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
    WorkerEndpoint,
};
use toolyard_gateway::tool_definition;
use toolyard_hub::{Profile, ToolCandidate};
use toolyard_mcp::definition::{ValidationRules, validate_tool};
use toolyard_nats::{NatsWorker, is_worker_group};

use super::{
    serve::cluster::{connect, connect_error},
    setup::{build, builder, close, process_name, process_number, servers_setup},
};
use crate::{
    cli::WorkerArgs,
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize, progress::interrupt_signal},
};

/// How long running calls may take to finish after SIGTERM; a little less than the 30 s that Kubernetes waits by default.
const MAX_DRAIN: Duration = Duration::from_secs(25);
/// How long gateways have to notice that this process is leaving before it unsubscribes. Calls that arrive meanwhile are
/// refused, and gateways send them elsewhere.
const LEAVE_GRACE: Duration = Duration::from_millis(500);
/// Servers announce several changes of their tools in a row.
const CHANGE_DEBOUNCE: Duration = Duration::from_millis(200);

pub(super) async fn run(
    arguments: &WorkerArgs,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let group = &arguments.group;
    if !is_worker_group(group) {
        let message = format!("`{group}` cannot be the name of a group of workers");
        return Err(CliError::usage(message).with_hint("use 1 to 64 of `a` to `z`, digits, `-` and `_`"));
    }
    let connection = connect(&cluster_settings(arguments, context)?, context).await?;
    let addresses = connection.addresses().to_owned();
    let number = process_number()?;

    let toolyard = build(builder(context, servers_setup(context))).await?;
    if let Some(manager) = toolyard.servers() {
        manager.keep_reconnecting();
    }
    toolyard.discover_servers().await;
    for (server, reason) in toolyard.server_problems() {
        output.message(&format!("note: server `{server}` failed: {reason}"));
    }

    let transport =
        NatsWorker::join(connection, group, number).await.map_err(|error| connect_error(&error))?;
    let transport = Arc::new(transport);
    let worker = Worker::new(number, Arc::clone(&transport) as _, arguments.concurrency);
    let worker = Arc::new(worker.with_name(process_name()));
    transport.register(worker.call_service(), worker.catalogue_service());
    let mut tools = WorkerTools {
        toolyard: &toolyard,
        profile: context.settings.serve.main_profile(),
        serves_native: arguments.native,
        locks: HashMap::new(),
    };
    // Changes count from here on.
    let changes = toolyard.hub().changes();
    let served = tools.collect();
    let (count, stop) = (served.len(), interrupt_signal());
    worker.set_tools(served).await.map_err(|error| CliError::unreachable(error.to_string()))?;
    output.message(&format!(
        "worker `{group}` serves {} at {addresses}, {} at a time",
        pluralize(count, "tool"),
        pluralize(usize::try_from(arguments.concurrency).unwrap_or(usize::MAX), "call"),
    ));
    if count == 0 {
        output.message("  hint: add servers or skills to its settings: toolyard servers add");
    }
    tokio::select! {
        () = stop => {}
        () = worker.keep_announcing() => {}
        () = tools.follow(changes, &worker, (count, output)) => {}
    }
    drain(&worker, &transport, output).await;
    close(&toolyard, context).await
}

/// `[cluster]` of the settings, with the servers of the command line.
fn cluster_settings(arguments: &WorkerArgs, context: &CliContext) -> Result<ClusterSettings, CliError> {
    let mut settings = context.settings.cluster.clone().unwrap_or_default();
    if let Some(nats) = &arguments.nats {
        settings.nats.clone_from(nats);
    }
    if settings.nats.trim().is_empty() {
        let hint = "pass --nats nats://HOST:4222, or set [cluster] nats in toolyard.toml";
        return Err(CliError::usage("a worker needs the address of NATS").with_hint(hint));
    }
    Ok(settings)
}

async fn drain(worker: &Worker, transport: &NatsWorker, output: &Output) {
    let running = worker.running_calls();
    if running > 0 {
        output.message(&format!(
            "stopping: waiting for {}; interrupt again to stop at once",
            pluralize(running, "call")
        ));
    }
    let draining = async {
        let (unfinished, ()) = tokio::join!(worker.drain(MAX_DRAIN), sleep(LEAVE_GRACE));
        if unfinished > 0 {
            output.message(&format!("note: {} did not finish in time", pluralize(unfinished, "call")));
        }
    };
    tokio::select! {
        () = draining => {}
        () = interrupt_signal() => output.message("stopped at once"),
    }
    transport.leave().await;
}

/// The tools of this machine, as gateways get them.
struct WorkerTools<'a> {
    toolyard: &'a Toolyard,
    profile: Profile,
    serves_native: bool,
    /// Of sources in which a call that writes excludes all others.
    locks: HashMap<SourceId, Arc<RwLock<()>>>,
}

impl WorkerTools<'_> {
    /// Replaces the tools of the worker whenever those of the hub change, and prints their number if it is another one. Never
    /// completes.
    async fn follow(
        &mut self,
        mut changes: watch::Receiver<u64>,
        worker: &Worker,
        (mut count, output): (usize, &Output),
    ) {
        while changes.changed().await.is_ok() {
            sleep(CHANGE_DEBOUNCE).await;
            changes.borrow_and_update();
            let served = self.collect();
            let new_count = served.len();
            if let Err(error) = worker.set_tools(served).await {
                tracing::warn!(%error, "gateways do not see the changed tools of this worker");
            } else if new_count != count {
                count = new_count;
                output.message(&format!("this worker serves {} now", pluralize(count, "tool")));
            }
        }
        std::future::pending::<()>().await;
    }

    fn collect(&mut self) -> Vec<ServedTool> {
        let snapshot = self.toolyard.hub().snapshot();
        let mut names = HashSet::new();
        let mut served = Vec::new();
        // The preferred tool of a name comes first.
        for candidate in snapshot.callable() {
            let is_offered = self.profile.allows(&candidate.name, candidate.source_id().as_str());
            let is_native = candidate.source.info.kind == SourceKind::Native;
            if !is_offered
                || (is_native && !self.serves_native)
                || candidate.tool.needs_conversation()
                || is_result_reader(&candidate)
            {
                continue;
            }
            let mut name = candidate.name.to_string();
            if !names.insert(name.clone()) {
                name = format!("{}__{name}", candidate.source_id().as_str().replace(':', "-"));
                if !names.insert(name.clone()) {
                    continue;
                }
            }
            served.extend(self.serve(&candidate, &name));
        }
        served
    }

    fn serve(&mut self, candidate: &ToolCandidate, name: &str) -> Option<ServedTool> {
        let definition = tool_definition(candidate.tool.spec(), name);
        // As the gateway does: the hash is part of the address of a tool.
        let valid = match validate_tool(&definition, ValidationRules::default()) {
            Ok(valid) => valid,
            Err(invalid) => {
                tracing::warn!(tool = name, reason = %invalid.reason, "a tool is not served to gateways");
                return None;
            }
        };
        let source = &candidate.source.info;
        let lock = source.exclusive.then(|| Arc::clone(self.locks.entry(source.id.clone()).or_default()));
        let tool =
            LocalTool { inner: Arc::clone(&candidate.tool), lock, is_read_only: candidate.hints.read_only };
        let endpoint = WorkerEndpoint { tool: name.into(), definition: valid.hash };
        Some(ServedTool { definition, endpoint, tool: Arc::new(tool) })
    }
}

/// Whether a tool reads stored results: those of calls through a gateway are in its store.
fn is_result_reader(candidate: &ToolCandidate) -> bool {
    candidate.source.info.kind == SourceKind::Native && *candidate.name == *"read_result"
}

/// A tool of this machine. The gateway has done what its hub does for a call, except what concerns this machine alone.
struct LocalTool {
    inner: Arc<dyn Tool>,
    /// Of the source, if a call that writes excludes all others there.
    lock: Option<Arc<RwLock<()>>>,
    is_read_only: bool,
}

impl Tool for LocalTool {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            // Gateways may know the tool by another name.
            let own_name = self.inner.spec().name.to_string();
            let request = ToolCallRequest { tool_name: own_name, ..request.clone() };
            let (_shared, _exclusive) = match &self.lock {
                Some(lock) if self.is_read_only => (Some(lock.read().await), None),
                Some(lock) => (None, Some(lock.write().await)),
                None => (None, None),
            };
            self.inner.call(&request, context).await
        })
    }
}
