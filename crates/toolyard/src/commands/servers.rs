//! `toolyard servers`: which there are, how they are, and what may be used of them.

use std::{sync::Arc, time::Instant};

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_core::ProtocolEra;
use toolyard_mcp::{
    client::{ConnectError, McpManager, Server, ServerState, Session, Shelf},
    config::{McpServerConfig, TransportConfig},
};

use crate::{
    cli::ServersCommand,
    commands::{approve, edit_servers, login, open},
    failure::{Code, Failure},
    folders::Workplace,
    guardian, logs,
    output::{Output, harmless},
    progress::waiting,
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
            show(&*find(manager, &name)?, output);
            Ok(())
        }
        ServersCommand::Connect { name } => {
            let server = find(manager, &name)?;
            test(manager, &[server], output).await
        }
        ServersCommand::Test { names } => {
            let servers = match names.as_slice() {
                [] => manager.servers().into_iter().filter(|server| server.config().enabled).collect(),
                names => names.iter().map(|name| find(manager, name)).collect::<Result<Vec<_>, _>>()?,
            };
            test(manager, &servers, output).await
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
    let servers = manager.servers();
    if output.wants_json() {
        output.json(&servers.iter().map(|server| facts(server)).collect::<Vec<_>>());
    } else if servers.is_empty() {
        output.talk("no servers yet; add one with `toolyard servers add`, or take over those of your editors: toolyard import");
    } else {
        let row = |server: &Arc<Server>| {
            let shelf = server.shelf();
            [
                server.config().id.to_string(),
                state_words(&server.state()),
                shelf.in_service.len().to_string(),
                harmless(&reached(server.config())),
                shelf.concern().map(|concern| harmless(&concern)).unwrap_or_default(),
            ]
        };
        let rows: Vec<_> = servers.iter().map(row).collect();
        output.table(["NAME", "STATE", "TOOLS", "REACHED BY", "NOTE"], &rows);
    }
    for problem in &workplace.server_problems {
        output.talk(&harmless(&format!("not used: {problem}")));
    }
}

/// What is known of a server, as data.
pub(crate) fn facts(server: &Server) -> Value {
    let (config, shelf) = (server.config(), server.shelf());
    json!({
        "name": config.id,
        "state": server.state().word(),
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

fn state_words(state: &ServerState) -> String {
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
    match &config.transport {
        TransportConfig::Stdio { command, args, .. } => {
            let words: Vec<&str> =
                std::iter::once(command.as_str()).chain(args.iter().map(String::as_str)).collect();
            toolyard_core::redact(&words.join(" ")).into_owned()
        }
        TransportConfig::Http { url, .. } => toolyard_core::redact(url).into_owned(),
    }
}

fn era_words(era: Option<ProtocolEra>) -> &'static str {
    match era {
        Some(ProtocolEra::Modern) => "modern",
        Some(ProtocolEra::Legacy) => "legacy",
        None => "not known yet",
    }
}

fn show(server: &Server, output: &Output) {
    if output.wants_json() {
        return output.json(&facts(server));
    }
    let (config, shelf) = (server.config(), server.shelf());
    output.line(&format!("{}   {}", config.id, state_words(&server.state())));
    output.line(&harmless(&format!("  Reached by: {}", reached(config))));
    output.line(&format!("  Protocol: {}", era_words(server.era())));
    output.line(&format!("  Trusted: {}", if config.trusted { "yes" } else { "no" }));
    let names: Vec<&str> = shelf.in_service.iter().map(|tool| &*tool.spec.name).collect();
    output.line(&harmless(&format!("  Tools ({}): {}", names.len(), names.join(", "))));
    for tool in &shelf.in_service {
        for note in &tool.notes {
            output.line(&harmless(&format!("  Note on {}: {note}", tool.spec.name)));
        }
    }
    tell_trouble(config, &shelf, output);
}

/// Says which tools of a server are not in service, and why.
pub(crate) fn tell_trouble(config: &McpServerConfig, shelf: &Shelf, output: &Output) {
    for tool in &shelf.out_of_service {
        output.line(&harmless(&format!("  Out of service: {}: {}", tool.name, tool.reason)));
        for line in &tool.difference {
            output.line(&harmless(&format!("    {line}")));
        }
    }
    if !shelf.out_of_service.is_empty() {
        output.talk(&format!("  hint: if that is as it should be: toolyard servers approve {}", config.id));
    }
    for tool in &shelf.quarantined {
        let name = tool.name.as_deref().unwrap_or("a tool without a name");
        output.line(&harmless(&format!("  Cannot be used: {name}: {}", tool.reason)));
    }
}

/// Starts servers and says how it went; a failure of one does not keep the others from being tried.
async fn test(manager: &McpManager, servers: &[Arc<Server>], output: &Output) -> Result<(), Failure> {
    let mut failed = Vec::new();
    let mut all = Vec::new();
    for server in servers {
        let id = server.config().id.clone();
        let started = Instant::now();
        let outcome = waiting(id.as_str(), manager.connect(id.as_str())).await?;
        if outcome.is_err() {
            failed.push(id.to_string());
        }
        if output.wants_json() {
            all.push(tested(server, &outcome, started));
        } else {
            tell_tested(server, &outcome, started, output);
        }
        server.stop().await;
    }
    if output.wants_json() {
        output.json(&all);
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => {
            let failure = Failure::new(Code::Unreachable, format!("{} could not be used", names.join(", ")))
                .with_hint(format!("see what it said: toolyard servers logs {}", names.join(" ")));
            Err(if output.wants_json() { failure.silent() } else { failure })
        }
    }
}

fn tested(server: &Server, outcome: &Result<Arc<Session>, ConnectError>, started: Instant) -> Value {
    json!({
        "server": facts(server),
        "milliseconds": started.elapsed().as_millis(),
        "protocol": outcome.as_ref().ok().map(|session| session.version()),
        "calls_itself": outcome.as_ref().ok().map(|session| session.about().name.clone()),
        "error": outcome.as_ref().err().map(|error| toolyard_core::redact(&error.to_string()).into_owned()),
    })
}

fn tell_tested(
    server: &Server,
    outcome: &Result<Arc<Session>, ConnectError>,
    started: Instant,
    output: &Output,
) {
    let (config, shelf) = (server.config(), server.shelf());
    let seconds = started.elapsed().as_secs_f64();
    match outcome {
        Ok(session) => {
            let tools = shelf.in_service.len();
            let version = session.version();
            output
                .line(&format!("{}   ready in {seconds:.1} s, protocol {version}, {tools} tools", config.id));
            if !shelf.first_seen.is_empty() {
                let names = shelf.first_seen.join(", ");
                output.talk(&harmless(&format!("  seen for the first time and in service: {names}")));
            }
            tell_trouble(config, &shelf, output);
        }
        Err(error) => {
            output.line(&harmless(&format!("{}   failed after {seconds:.1} s: {error}", config.id)));
        }
    }
}

/// Asks the guardians of a server to take it down; whichever process runs it will find it gone.
fn stop(name: &str, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    if !workplace.servers.iter().any(|server| server.id.as_str() == name) {
        return Err(Failure::new(Code::BadUse, format!("server `{name}` does not exist"))
            .with_hint("list what there is: toolyard servers list"));
    }
    let stopped =
        guardian::of_server(name).into_iter().filter(|number| guardian::ask_to_stop(*number)).count();
    output.talk(&match stopped {
        0 => format!("{name} was not running"),
        1 => format!("{name} is being stopped"),
        more => format!("{name} is being stopped in {more} places"),
    });
    Ok(())
}
