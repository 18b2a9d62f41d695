//! `toolyard serve`: serves the gateway over HTTP or stdio.

mod banner;
pub(super) mod replicas;
mod secrets;
mod server_log;

use std::{
    io::{ErrorKind, IsTerminal as _},
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{net::TcpListener, sync::oneshot, time::Instant};
use toolyard::{
    Toolyard,
    gateway::{AgentApi, AgentService, ForwardInputToCaller, GatewayConfig, OrphanedRuns},
    settings::{JournalSetting, ServeSettings},
};
use toolyard_mcp_server::{
    Access, AccessRules, AccessToken, HttpConfig, ServerConfig, SessionKeys, SharedAccessRules, serve_http,
    serve_stdio,
};

use self::secrets::Secrets;
use crate::{
    cli::ServeArgs,
    commands::setup::{build, builder, close, require_store, servers_setup},
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize, progress::interrupt_signal},
};

const DEFAULT_ADDRESS: &str = "127.0.0.1:7300";
/// Minimum time for agents to release their runs on shutdown.
const MIN_AGENT_GRACE: Duration = Duration::from_secs(2);
/// Longer than any lease that Toolyard takes on a run.
const MAX_LEASE_DURATION: Duration = Duration::from_secs(35);

pub(super) async fn run(arguments: ServeArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let serve = serve_settings(&arguments, context);
    let address = match (&arguments.http, arguments.stdio) {
        (Some(address), _) => Some(address.as_str()),
        (None, false) if std::io::stdin().is_terminal() => Some(DEFAULT_ADDRESS),
        (None, _) => None,
    };
    match address {
        Some(address) => run_http(address, &arguments, &serve, context, output).await,
        None => run_stdio(&arguments, &serve, context, output).await,
    }
}

/// `[serve]`, overridden by the command line.
fn serve_settings(arguments: &ServeArgs, context: &CliContext) -> ServeSettings {
    let mut serve = context.settings.serve.clone();
    if let Some(surface) = arguments.surface {
        serve.surface = surface;
        serve.profiles.values_mut().for_each(|profile| profile.surface = None);
    }
    serve
}

async fn run_http(
    address: &str,
    arguments: &ServeArgs,
    serve: &ServeSettings,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let bind_error = |error: std::io::Error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => {
                "another process, perhaps another Toolyard, uses this port; choose another: --http 127.0.0.1:7301"
            }
            _ => "an address is HOST:PORT, such as 127.0.0.1:7300",
        };
        CliError::usage(format!("failed to listen on {address}: {error}")).with_hint(hint)
    };
    let listener = TcpListener::bind(address).await.map_err(bind_error)?;
    let address = listener.local_addr().map_err(bind_error)?;
    if arguments.no_auth && !address.ip().is_loopback() {
        let message = format!("--no-auth is not allowed on {address}: other machines could reach it");
        return Err(CliError::usage(message).with_hint("omit it: a token is generated"));
    }
    let profiles = serve.profiles()?;
    let secrets = Secrets::load(serve, context).await?;
    let access = match arguments.no_auth {
        true => Access::Open,
        false => Access::Token(AccessToken::new(secrets.token())),
    };
    let mut rules = AccessRules::new(access);
    rules.hosts = serve.allowed_hosts.iter().chain(&arguments.allow_host).cloned().collect();
    rules.origins = serve.allowed_origins.iter().chain(&arguments.allow_origin).cloned().collect();
    let mut http = HttpConfig::new(Access::Open);
    http.access = SharedAccessRules::new(rules);
    http.legacy_sse = arguments.legacy_sse;

    let drain_deadline = OnceLock::new();
    let toolyard = open_for_clients(context).await?;
    let config = server_config(secrets.session_keys()?);
    let agents = agent_service(serve, &toolyard);
    http.routes = agents.clone().map(|agents| Arc::new(AgentApi::new(agents)) as _);
    let drain_timeout = http.drain_timeout;
    let gateway = GatewayConfig {
        main_profile: serve.main_profile(),
        profiles,
        agents: agents.clone(),
        ..gateway_config(&toolyard, context)?
    };
    let server = Arc::new(gateway.build(config));
    banner::print(address, arguments, serve, &secrets, output);
    for note in replicas::notes(serve, context.store.as_ref(), arguments.no_auth) {
        output.message(&format!("  note: {}; {}", note.detail, note.hint));
    }
    if agents.is_some() {
        banner::print_agents(address, &toolyard, output);
    }
    let (second_sender, second_receiver) = oneshot::channel();
    let first_signal = async {
        let _ = second_sender.send(graceful_stop_signal(output).await);
        agents.iter().for_each(AgentService::stop_accepting);
        let _ = drain_deadline.set(Instant::now() + drain_timeout);
    };
    let second_signal = async {
        match second_receiver.await {
            Ok(signal) => signal.await,
            // The server ended without a first signal.
            Err(_) => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = serve_http(server, listener, http, first_signal) => ended,
        () = second_signal => {
            output.message("stopped at once");
            return Ok(());
        }
        () = server_log::watch(&toolyard) => Ok(()),
        () = resume_orphaned_runs(agents.as_ref(), output) => Ok(()),
    };
    shut_down(&toolyard, agents.as_ref(), drain_deadline.get().copied(), context, output).await?;
    ended.map_err(|error| CliError::failed(error.to_string()))
}

async fn run_stdio(
    arguments: &ServeArgs,
    serve: &ServeSettings,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let profile = match &arguments.profile {
        Some(name) => serve.profile(name)?,
        None => serve.main_profile(),
    };
    let toolyard = open_for_clients(context).await?;
    let keys = SessionKeys::random();
    let config = server_config(keys.map_err(|error| CliError::failed(error.to_string()))?);
    let agents = agent_service(serve, &toolyard).filter(|_| arguments.profile.is_none());
    let gateway = GatewayConfig {
        main_profile: profile,
        agents: agents.clone(),
        ..gateway_config(&toolyard, context)?
    };
    let server = Arc::new(gateway.build(config));
    let ended = serve_stdio(server, tokio::io::stdin(), tokio::io::stdout(), interrupt_signal()).await;
    shut_down(&toolyard, agents.as_ref(), None, context, output).await?;
    ended.map_err(|error| CliError::failed(error.to_string()))
}

/// A Toolyard whose servers send input requests to the client that made the call.
async fn open_for_clients(context: &CliContext) -> Result<Toolyard, CliError> {
    let mut servers = servers_setup(context);
    servers.input_handler = Arc::new(ForwardInputToCaller);
    build(builder(context, servers).lazy_past_requests()).await
}

/// The agents for clients: as configured, else if there is a model and the main profile is not restricted. Agents are limited
/// to the main profile.
fn agent_service(serve: &ServeSettings, toolyard: &Toolyard) -> Option<AgentService> {
    let is_unrestricted = serve.main_profile().allows_everything();
    let is_enabled =
        serve.agents.unwrap_or_else(|| is_unrestricted && !toolyard.agents().models().is_empty());
    is_enabled.then(|| toolyard.agent_service(serve.main_profile(), serve.remote_approval))
}

fn server_config(sessions: SessionKeys) -> ServerConfig {
    let mut config = ServerConfig::new("toolyard", env!("CARGO_PKG_VERSION"), sessions);
    config.title = Some("Toolyard".to_owned());
    config
}

/// The gateway without profiles and agents.
fn gateway_config(toolyard: &Toolyard, context: &CliContext) -> Result<GatewayConfig, CliError> {
    let is_journalled = context.settings.journal == JournalSetting::Always;
    if is_journalled {
        require_store(context)?;
    }
    let skill_folders =
        context.skill_environment.skill_folders.iter().map(|folder| folder.path.clone()).collect();
    let journal = toolyard.store().filter(|_| is_journalled).map(|store| Arc::new(store.clone()) as _);
    Ok(GatewayConfig { skill_folders, journal, ..toolyard.gateway_config() })
}

/// Waits for the first signal, announces the shutdown, and returns the future of the second signal.
async fn graceful_stop_signal(output: &Output) -> impl Future<Output = ()> + Send + use<> {
    interrupt_signal().await;
    let second = interrupt_signal();
    output.message("stopping: waiting for in-flight calls; interrupt again to stop at once");
    second
}

/// Resumes background runs of an earlier process and reports other unfinished ones. Never completes.
async fn resume_orphaned_runs(agents: Option<&AgentService>, output: &Output) {
    let Some(agents) = agents else { return std::future::pending().await };
    let found = resume_and_report(agents, output).await;
    if found.not_resumed > 0 {
        output.message(&format!(
            "{}; list: toolyard runs list --unfinished, resume: toolyard runs resume",
            pluralize(found.not_resumed, "interrupted run")
        ));
    }
    if found.leased > 0 {
        // A killed process holds its leases until they expire.
        tokio::time::sleep(MAX_LEASE_DURATION).await;
        resume_and_report(agents, output).await;
    }
    std::future::pending::<()>().await;
}

async fn resume_and_report(agents: &AgentService, output: &Output) -> OrphanedRuns {
    let found = agents.resume_orphaned().await.unwrap_or_else(|error| {
        output.message(&format!("note: failed to look for interrupted runs: {error}"));
        OrphanedRuns::default()
    });
    if found.resumed > 0 {
        output.message(&format!("resumed {}", pluralize(found.resumed, "run")));
    }
    found
}

/// Releases the runs of agents, then stops the servers; another signal ends the waiting.
async fn shut_down(
    toolyard: &Toolyard,
    agents: Option<&AgentService>,
    deadline: Option<Instant>,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let closing = async {
        if let Some(agents) = agents {
            let min_deadline = Instant::now() + MIN_AGENT_GRACE;
            agents.shutdown(deadline.map_or(min_deadline, |deadline| deadline.max(min_deadline))).await;
        }
        close(toolyard, context).await
    };
    tokio::select! {
        closed = closing => closed,
        () = interrupt_signal() => {
            output.message("stopped at once");
            Ok(())
        }
    }
}
