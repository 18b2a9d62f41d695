//! `toolyard servers`: which there are, how they are, and what may be used of them.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_core::ProtocolEra;
use toolyard_mcp::{
    client::{McpManager, Server, ServerState, Shelf},
    config::{McpServerConfig, ServerSettings, TransportConfig},
};

use crate::{
    cli::ServersCommand,
    commands::{
        approve, edit_servers, login, open,
        server_memory::{ServerMemory, Trouble},
        test_servers::test,
    },
    failure::{Code, Failure},
    folders::Workplace,
    guardian, logs,
    output::{Output, harmless},
};

/// Lists, shows, starts, stops, approves.
pub(crate) async fn run(
    command: ServersCommand,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        ServersCommand::Add(server) => return edit_servers::add(server, workplace, output),
        ServersCommand::Remove { name } => return edit_servers::remove(&name, workplace, output).await,
        ServersCommand::Stop { name } => return stop(&name, workplace, output),
        ServersCommand::Logs { name, lines } => return logs::show(&name, lines, workplace, output),
        ServersCommand::Login { name } => return login::login(&name, workplace, output).await,
        ServersCommand::Logout { name } => return login::logout(&name, workplace, output),
        _ => {}
    }
    let yard = open(workplace).await?;
    let outcome = with_yard(command, &yard, workplace, output).await;
    logs::keep(&yard, workplace);
    yard.close().await?;
    outcome
}

async fn with_yard(
    command: ServersCommand,
    yard: &Toolyard,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let Some(manager) = yard.servers() else { return Ok(()) };
    match command {
        ServersCommand::List => {
            list(manager, workplace, output);
            Ok(())
        }
        ServersCommand::Show { name } => {
            let (server, memory) = (find(manager, &name)?, ServerMemory::read(workplace));
            show(&server, memory.of(server.config()), output);
            Ok(())
        }
        ServersCommand::Connect { name } => {
            let server = find(manager, &name)?;
            test(manager, &[server], workplace, output).await
        }
        ServersCommand::Test { names } => {
            let servers = match names.as_slice() {
                [] => manager.servers().into_iter().filter(|server| server.config().enabled).collect(),
                names => names.iter().map(|name| find(manager, name)).collect::<Result<Vec<_>, _>>()?,
            };
            test(manager, &servers, workplace, output).await
        }
        ServersCommand::Approve { name, tools, yes } => {
            approve::run(manager, &find(manager, &name)?, &tools, yes, output).await
        }
        _ => Ok(()),
    }
}

/// A server by its name.
pub(crate) fn find(manager: &McpManager, name: &str) -> Result<Arc<Server>, Failure> {
    manager.server(name).ok_or_else(|| {
        let names: Vec<String> =
            manager.servers().iter().map(|server| server.config().id.to_string()).collect();
        let hint = match names.as_slice() {
            [] => "there are none yet: toolyard servers add, or toolyard import".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        Failure::new(Code::BadUse, format!("server `{name}` does not exist")).with_hint(hint)
    })
}

fn list(manager: &McpManager, workplace: &Workplace, output: &Output) {
    let (servers, memory) = (manager.servers(), ServerMemory::read(workplace));
    if output.wants_json() {
        let facts = |server: &Arc<Server>| facts(server, memory.of(server.config()));
        output.json(&servers.iter().map(facts).collect::<Vec<_>>());
    } else if servers.is_empty() {
        output.talk("no servers yet; add one with `toolyard servers add`, or take over those of your editors: toolyard import");
    } else {
        let row = |server: &Arc<Server>| {
            let (shelf, trouble) = (server.shelf(), memory.of(server.config()));
            let note = shelf.concern().or_else(|| trouble.map(|trouble| trouble.reason.clone()));
            [
                server.config().id.to_string(),
                state_words(&server.state(), trouble),
                shelf.in_service.len().to_string(),
                note.map(|note| harmless(&note)).unwrap_or_default(),
                harmless(&reached(server.config())),
            ]
        };
        let rows: Vec<_> = servers.iter().map(row).collect();
        output.table(["NAME", "STATE", "TOOLS", "NOTE", "REACHED BY"], &rows);
    }
    for problem in &workplace.server_problems {
        output.talk(&harmless(&format!("not used: {problem}")));
    }
}

/// What is known of a server, as data.
pub(crate) fn facts(server: &Server, trouble: Option<&Trouble>) -> Value {
    let (config, shelf) = (server.config(), server.shelf());
    json!({
        "name": config.id,
        "state": server.state().word(),
        "last_failure": trouble.map(|trouble| json!({"at": trouble.at, "reason": trouble.reason})),
        "reached_by": reached(config),
        "trusted": config.trusted,
        "strict": config.strict,
        "era": server.era(),
        "tools": shelf.in_service.iter().map(|tool| &tool.spec.name).collect::<Vec<_>>(),
        "out_of_service": shelf.out_of_service.iter().map(|tool| json!({
            "name": tool.name, "reason": tool.reason, "difference": tool.difference,
        })).collect::<Vec<_>>(),
        "quarantined": shelf.quarantined.iter().map(|tool| json!({
            "name": tool.name, "reason": tool.reason,
        })).collect::<Vec<_>>(),
    })
}

fn state_words(state: &ServerState, trouble: Option<&Trouble>) -> String {
    if let (ServerState::Configured | ServerState::Known, Some(trouble)) = (state, trouble) {
        return format!("failed {}", trouble.ago());
    }
    match state {
        ServerState::Disabled => "disabled".to_owned(),
        ServerState::Configured => "never started".to_owned(),
        ServerState::Known => "known, not running".to_owned(),
        ServerState::Starting { .. } => "starting".to_owned(),
        ServerState::Ready { .. } => "ready".to_owned(),
        ServerState::Degraded { reason, .. } => format!("ready, {}", harmless(reason)),
        ServerState::Down { reason, .. } => format!("down: {}", harmless(reason)),
        _ => state.word().to_owned(),
    }
}

/// How a server is reached, without anything that might be a secret.
fn reached(config: &McpServerConfig) -> String {
    let settings = match &config.transport {
        TransportConfig::Stdio { command, args, .. } => {
            ServerSettings { command: Some(command.clone()), args: args.clone(), ..ServerSettings::default() }
        }
        TransportConfig::Http { url, .. } => {
            ServerSettings { url: Some(url.clone()), ..ServerSettings::default() }
        }
    };
    let line = settings.summary();
    // The first word is the transport, which the rest shows as well.
    line.split_once(' ').map(|(_, rest)| rest.trim_start().to_owned()).unwrap_or(line)
}

fn era_words(era: Option<ProtocolEra>) -> &'static str {
    match era {
        Some(ProtocolEra::Modern) => "modern",
        Some(ProtocolEra::Legacy) => "legacy",
        None => "not known yet",
    }
}

fn show(server: &Server, trouble: Option<&Trouble>, output: &Output) {
    if output.wants_json() {
        return output.json(&facts(server, trouble));
    }
    let (config, shelf) = (server.config(), server.shelf());
    output.line(&format!("{}   {}", config.id, state_words(&server.state(), trouble)));
    if let Some(trouble) = trouble {
        output.line(&harmless(&format!("  Failed: {}", trouble.reason)));
    }
    output.line(&harmless(&format!("  Reached by: {}", reached(config))));
    output.line(&format!("  Protocol: {}", era_words(server.era())));
    output.line(&format!("  Trusted: {}", if config.trusted { "yes" } else { "no" }));
    let names: Vec<&str> = shelf.in_service.iter().map(|tool| &*tool.spec.name).collect();
    let names = if names.is_empty() { "none in service".to_owned() } else { names.join(", ") };
    output.line(&harmless(&format!("  Tools: {names}")));
    for tool in &shelf.in_service {
        for note in &tool.notes {
            output.line(&harmless(&format!("  Note on {}: {note}", tool.spec.name)));
        }
    }
    tell_trouble(&shelf, output);
    hint_to_approve(config, &shelf, output);
}

/// What to do about tools that wait.
pub(crate) fn hint_to_approve(config: &McpServerConfig, shelf: &Shelf, output: &Output) {
    if !shelf.out_of_service.is_empty() {
        output.talk(&format!("  hint: if that is as it should be: toolyard servers approve {}", config.id));
    }
}

/// Says which tools of a server are not in service, and why.
pub(crate) fn tell_trouble(shelf: &Shelf, output: &Output) {
    for tool in &shelf.out_of_service {
        output.line(&harmless(&format!("  Out of service: {}: {}", tool.name, tool.reason)));
        for line in &tool.difference {
            output.line(&harmless(&format!("    {line}")));
        }
    }
    for tool in &shelf.quarantined {
        let name = tool.name.as_deref().unwrap_or("a tool without a name");
        output.line(&harmless(&format!("  Cannot be used: {name}: {}", tool.reason)));
    }
}

/// Asks the guardians of a server to take it down; whichever process runs it will find it gone.
fn stop(name: &str, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let Some(server) = workplace.servers.iter().find(|server| server.id.as_str() == name) else {
        return Err(Failure::new(Code::BadUse, format!("server `{name}` does not exist"))
            .with_hint("list what there is: toolyard servers list"));
    };
    // By its label: another project may use the same name for another server.
    let stopped = guardian::of_server(&server.label())
        .into_iter()
        .filter(|number| guardian::ask_to_stop(*number))
        .count();
    output.talk(&match stopped {
        0 => format!("{name} was not running"),
        1 => format!("{name} is being stopped"),
        more => format!("{name} is being stopped in {more} places"),
    });
    Ok(())
}
