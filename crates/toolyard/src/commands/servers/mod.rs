//! `toolyard servers`: lists, adds, changes, tests and stops MCP servers, and approves their changed tools.

mod approve;
mod change;
pub(crate) mod discovery;
pub(crate) mod edit;
pub(crate) mod failure_cache;
mod login;
pub(crate) mod logs;
pub(crate) mod operator_changes;
mod pending_servers;
mod sign_ins;
mod test;
mod workers;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_core::{NameClaim, SourceId, SourceKind};
use toolyard_mcp_client::{
    ApprovedTool, ConnectError, ManagedServer, McpManager, ServerState, ToolApprovals, ToolOffer,
    config::{McpServerConfig, ServerSettings, TransportConfig},
};

use self::{
    failure_cache::{ServerFailure, ServerFailures},
    test::test,
    workers::WorkerGroup,
};
use crate::{
    cli::ServersCommand,
    commands::setup::{close, open},
    config::CliContext,
    error::CliError,
    process_guard,
    terminal::{Output, pluralize},
};

pub(super) async fn run(
    command: ServersCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        ServersCommand::Add(server) => return edit::add(server, context, output).await,
        ServersCommand::Remove { name } => return edit::remove(&name, context, output).await,
        ServersCommand::Edit(arguments) => return change::edit(&arguments, context, output).await,
        ServersCommand::Enable { name } => return change::set_enabled(&name, true, context, output).await,
        ServersCommand::Disable { name } => return change::set_enabled(&name, false, context, output).await,
        ServersCommand::Trust { name, yes } => {
            return change::set_trusted(&name, true, yes, context, output).await;
        }
        ServersCommand::Untrust { name } => {
            return change::set_trusted(&name, false, true, context, output).await;
        }
        ServersCommand::Stop { name } => return stop(&name, context, output),
        ServersCommand::Logs { name, lines } => return logs::show(&name, lines, context, output),
        ServersCommand::Login { name, scope } => return login::login(&name, &scope, context, output).await,
        ServersCommand::Logout { name, caller: None } => return login::logout(&name, context, output),
        ServersCommand::Logout { name, caller: Some(caller) } => {
            return sign_ins::remove(&name, &caller, context, output);
        }
        ServersCommand::SignIns { name } => return sign_ins::list(name.as_deref(), context, output),
        _ => {}
    }
    let toolyard = open(context).await?;
    let outcome = run_with_toolyard(command, &toolyard, context, output).await;
    close(&toolyard, context).await?;
    outcome
}

async fn run_with_toolyard(
    command: ServersCommand,
    toolyard: &Toolyard,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let Some(manager) = toolyard.servers() else { return Ok(()) };
    match command {
        ServersCommand::List => list(manager, context, output).await,
        ServersCommand::Show { name } => {
            if let Some(group) = find_workers(manager, &name, context).await? {
                group.show(output);
                return Ok(());
            }
            let (server, failures) = (find(manager, &name)?, ServerFailures::read(context));
            show(&server, failures.get(server.config()), output);
            Ok(())
        }
        ServersCommand::Test { names } => {
            let servers = match names.as_slice() {
                [] => manager.servers().into_iter().filter(|server| server.config().enabled).collect(),
                names => names.iter().map(|name| find(manager, name)).collect::<Result<Vec<_>, _>>()?,
            };
            test(manager, &servers, context, output).await
        }
        ServersCommand::Approve { name, tools, take_names, yes } => {
            let decision = approve::ApprovalRequest { tools: &tools, take_names, yes };
            if let Some(group) = find_workers(manager, &name, context).await? {
                return group.approve((manager, toolyard.hub()), &decision, context, output).await;
            }
            approve::run(manager, &find(manager, &name)?, &decision, context, output).await
        }
        _ => Ok(()),
    }
}

/// A group of workers, unless a server has this name.
async fn find_workers(
    manager: &McpManager,
    name: &str,
    context: &CliContext,
) -> Result<Option<WorkerGroup>, CliError> {
    match manager.server(name) {
        Some(_) => Ok(None),
        None => WorkerGroup::find(manager, name, context).await,
    }
}

fn find(manager: &McpManager, name: &str) -> Result<Arc<ManagedServer>, CliError> {
    manager.server(name).ok_or_else(|| {
        let names: Vec<String> =
            manager.servers().iter().map(|server| server.config().id.to_string()).collect();
        let hint = match names.as_slice() {
            [] => "add one with `toolyard servers add`, or run: toolyard import".to_owned(),
            names => format!("known servers: {}", names.join(", ")),
        };
        CliError::usage(format!("server `{name}` does not exist")).with_hint(hint)
    })
}

fn find_config<'a>(name: &str, context: &'a CliContext) -> Result<&'a McpServerConfig, CliError> {
    context.servers.iter().find(|server| server.id.as_str() == name).ok_or_else(|| {
        CliError::usage(format!("server `{name}` does not exist"))
            .with_hint("list servers: toolyard servers list")
    })
}

async fn list(manager: &McpManager, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let (servers, failures) = (manager.servers(), ServerFailures::read(context));
    let workers = WorkerGroup::all(manager, context).await?;
    if output.is_json() {
        let entry = |server: &Arc<ManagedServer>| server_json(server, failures.get(server.config()));
        let entries = servers.iter().map(entry).chain(workers.iter().map(WorkerGroup::to_json));
        output.json(&entries.collect::<Vec<_>>());
    } else if servers.is_empty() && workers.is_empty() {
        output.message("No servers yet. Add one with `toolyard servers add`, or import those of your editors: toolyard import");
    } else {
        let row = |server: &Arc<ManagedServer>| {
            let (approvals, failure) = (server.tool_approvals(), failures.get(server.config()));
            let note = approvals.problem_summary().or_else(|| failure.map(|failure| failure.reason.clone()));
            [
                server.config().id.to_string(),
                state_label(&server.state(), failure),
                tool_names(server, &approvals, ToolOffer::Offered).len().to_string(),
                note.unwrap_or_default(),
                endpoint(server.config()),
            ]
        };
        let rows: Vec<_> = servers.iter().map(row).chain(workers.iter().map(WorkerGroup::row)).collect();
        output.table(["NAME", "STATE", "TOOLS", "NOTE", "ENDPOINT"], rows);
    }
    for problem in &context.server_problems {
        output.message(&format!("ignored: {problem}"));
    }
    Ok(())
}

fn server_json(server: &ManagedServer, failure: Option<&ServerFailure>) -> Value {
    let (config, approvals) = (server.config(), server.tool_approvals());
    json!({
        "name": config.id,
        "state": server.state().label(),
        "last_failure": failure.map(|failure| json!({"at": failure.at, "reason": failure.reason})),
        "endpoint": endpoint(config),
        "trusted": config.trusted,
        "hold_new_tools": config.hold_new_tools,
        "instructions": server.content().instructions,
        "revision_family": server.revision_family(),
        "tools": tool_names(server, &approvals, ToolOffer::Offered),
        "names_of_other_sources": names_of_others(server).into_iter().collect::<BTreeMap<_, _>>(),
        "awaiting_approval": approvals.quarantined.iter().map(|tool| json!({
            "name": tool.name, "reason": tool.reason, "difference": tool.difference,
        })).collect::<Vec<_>>(),
        "rejected": approvals.rejected.iter().map(|tool| json!({
            "name": tool.name, "reason": tool.reason,
        })).collect::<Vec<_>>(),
    })
}

/// The names of the approved tools that are offered, or that are not offered for one reason.
fn tool_names<'a>(server: &ManagedServer, approvals: &'a ToolApprovals, offer: ToolOffer) -> Vec<&'a str> {
    let matching = approvals.approved().iter().filter(|tool| server.offer(&tool.spec) == offer);
    matching.map(|tool| &*tool.spec.name).collect()
}

/// How many approved tools are not offered, for each reason.
fn tools_not_offered(server: &ManagedServer, approvals: &ToolApprovals) -> Vec<String> {
    let count = |offer: ToolOffer| tool_names(server, approvals, offer).len();
    let task_only = match count(ToolOffer::TaskOnly) {
        0 => None,
        1 => Some("1 not offered, because it can only be called as a task".to_owned()),
        count => Some(format!("{count} not offered, because they can only be called as tasks")),
    };
    let excluded = match count(ToolOffer::Excluded) {
        0 => None,
        count => Some(format!("{count} not offered, because of the server's settings")),
    };
    [task_only, excluded].into_iter().flatten().collect()
}

/// Why a server could not be started, and how to sign in if that is the reason.
fn describe_failure(error: &ConnectError, id: &SourceId) -> String {
    let reason = error.to_string();
    match error {
        ConnectError::Transport(error) if error.is_unauthorized() => {
            format!("{reason}; sign in: toolyard servers login {id}")
        }
        _ => reason,
    }
}

fn state_label(state: &ServerState, failure: Option<&ServerFailure>) -> String {
    if let (ServerState::Configured | ServerState::Stopped, Some(failure)) = (state, failure) {
        return format!("failed {}", failure.ago());
    }
    match state {
        ServerState::Disabled => "disabled".to_owned(),
        ServerState::Configured => "never started".to_owned(),
        ServerState::Stopped => "not running".to_owned(),
        ServerState::Starting { .. } => "starting".to_owned(),
        ServerState::Ready { .. } => "ready".to_owned(),
        ServerState::Degraded { reason, .. } => format!("ready, {}", reason),
        ServerState::Down { reason, .. } => format!("down: {}", reason),
        _ => state.label().to_owned(),
    }
}

/// A server's command or URL, without anything that might be a secret.
fn endpoint(config: &McpServerConfig) -> String {
    let settings = match &config.transport {
        TransportConfig::Stdio { command, args, .. } => {
            ServerSettings { command: Some(command.clone()), args: args.clone(), ..ServerSettings::default() }
        }
        TransportConfig::Http { url, .. } => {
            ServerSettings { url: Some(url.clone()), ..ServerSettings::default() }
        }
    };
    let line = settings.summary();
    // Drops the transport, which the rest shows as well.
    line.split_once(' ').map(|(_, rest)| rest.trim_start().to_owned()).unwrap_or(line)
}

fn show(server: &ManagedServer, failure: Option<&ServerFailure>, output: &Output) {
    if output.is_json() {
        return output.json(&server_json(server, failure));
    }
    let (config, approvals) = (server.config(), server.tool_approvals());
    output.line(&format!("{}   {}", config.id, state_label(&server.state(), failure)));
    if let Some(failure) = failure {
        output.line(&format!("  Failed: {}", failure.reason));
    }
    output.line(&format!("  Endpoint: {}", endpoint(config)));
    let family = server.revision_family().map(|family| format!("{family:?}").to_lowercase());
    output.line(&format!("  Protocol: {}", family.as_deref().unwrap_or("unknown")));
    output.line(&format!("  Trusted: {}", if config.trusted { "yes" } else { "no" }));
    let names = tool_names(server, &approvals, ToolOffer::Offered);
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    output.line(&format!("  Tools: {names}"));
    let count = |offer: ToolOffer| tool_names(server, &approvals, offer).len();
    let (task_only, excluded) = (count(ToolOffer::TaskOnly), count(ToolOffer::Excluded));
    let task = if task_only == 1 { "a task" } else { "tasks" };
    if task_only > 0 {
        let tools = pluralize(task_only, "tool");
        output.line(&format!("  Not offered: {tools}, which can only be called as {task}"));
    }
    if excluded > 0 {
        let tools = pluralize(excluded, "tool");
        output.line(&format!("  Not offered: {tools}, because of the server's settings"));
    }
    if let Some(instructions) = &server.content().instructions {
        let readers =
            if config.trusted { "sent to clients" } else { "not sent to clients: the server is not trusted" };
        output.line(&format!("  Instructions ({readers}):"));
        instructions.lines().for_each(|line| output.line(&format!("    {line}")));
    }
    for tool in approvals.approved() {
        for note in &tool.notes {
            output.line(&format!("  Note on {}: {note}", tool.spec.name));
        }
    }
    for line in shared_name_lines(server) {
        output.line(&line);
    }
    print_unusable_tools(&approvals, output);
    print_approve_hint(config, &approvals, output);
    if let Some((tool, _)) =
        names_of_others(server).into_iter().find(|(_, owner)| owner.kind() == SourceKind::Mcp)
    {
        let command = format!("toolyard servers approve {} {tool} --take-names", config.id);
        output.message(&format!("  hint: give a name to this server: {command}"));
    }
}

/// Approved tools whose bare names belong to other sources, with those.
fn names_of_others(server: &ManagedServer) -> Vec<(String, SourceId)> {
    yielded_names(server, |tool| server.name_claim(tool))
}

/// Approved tools that yield their bare names to other sources by these claims, with those.
fn yielded_names(
    server: &ManagedServer,
    claim: impl Fn(&ApprovedTool) -> NameClaim,
) -> Vec<(String, SourceId)> {
    let approvals = server.tool_approvals();
    let yielded = |tool: &Arc<ApprovedTool>| Some((tool.spec.name.to_string(), claim(tool).yields_to?));
    approvals.approved().iter().filter_map(yielded).collect()
}

/// The approved tools of a server with their claims on their bare names.
fn name_claims(server: &ManagedServer) -> Vec<(Arc<str>, NameClaim)> {
    let claim = |tool: &Arc<ApprovedTool>| (Arc::clone(&tool.spec.name), server.name_claim(tool));
    server.tool_approvals().approved().iter().map(claim).collect()
}

/// How tools are called whose bare names other sources have too.
fn shared_name_lines(server: &ManagedServer) -> Vec<String> {
    let id = &server.config().id;
    let mut lines: Vec<String> = Vec::new();
    let mut contested: BTreeMap<SourceId, Vec<Arc<str>>> = BTreeMap::new();
    for (name, claim) in name_claims(server) {
        match claim.yields_to {
            Some(owner) if claim.contests => contested.entry(owner).or_default().push(name),
            Some(owner) => {
                lines.push(format!("  Callable as {id}.{name}: the name `{name}` belongs to {owner}"));
            }
            None => {}
        }
    }
    lines.extend(contested.into_iter().map(|(owner, names)| {
        let example = names.first().map(AsRef::as_ref).unwrap_or_default();
        let count = pluralize(names.len(), "name");
        format!("  Shares {count} with {owner}: call its tools as {id}.{example}")
    }));
    lines
}

fn print_approve_hint(config: &McpServerConfig, approvals: &ToolApprovals, output: &Output) {
    if !approvals.quarantined.is_empty() {
        output.message(&format!("  hint: accept the change: toolyard servers approve {}", config.id));
    }
}

/// Prints the tools that await approval or were rejected.
fn print_unusable_tools(approvals: &ToolApprovals, output: &Output) {
    for tool in &approvals.quarantined {
        output.line(&format!("  Awaiting approval: {}: {}", tool.name, tool.reason));
        for line in &tool.difference {
            output.line(&format!("    {line}"));
        }
    }
    for tool in &approvals.rejected {
        let name = tool.name.as_deref().unwrap_or("an unnamed tool");
        output.line(&format!("  Rejected: {name}: {}", tool.reason));
    }
}

/// Terminates the guards of a server, in whichever Toolyard process it runs.
fn stop(name: &str, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let server = find_config(name, context)?;
    // By label, not name: another project may have a different server of the same name.
    let stopped = process_guard::guard_pids(&server.label())
        .into_iter()
        .filter(|pid| process_guard::terminate(*pid))
        .count();
    output.message(&match stopped {
        0 => format!("{name} was not running"),
        1 => format!("stopping {name}"),
        processes => format!("stopping {name} in {processes} processes"),
    });
    Ok(())
}
