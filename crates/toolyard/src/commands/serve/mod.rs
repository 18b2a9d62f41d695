//! `toolyard serve`: serves the gateway over HTTP or stdio.

mod banner;
pub(super) mod callers;
mod catalogue;
pub(super) mod cluster;
mod cluster_status;
mod console;
mod drain;
mod operator;
mod policies;
mod readiness;
mod reload;
pub(super) mod replicas;
mod retention;
mod secrets;
mod server_log;
mod sign_in;
pub(super) mod workers;

use std::{
    io::{ErrorKind, IsTerminal as _},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{net::TcpListener, sync::oneshot, time::Instant};
use toolyard::{
    Toolyard,
    settings::{JournalSetting, ServeSettings},
};
use toolyard_core::{BoxFuture, JournalError};
use toolyard_gateway::{AgentService, GatewayConfig, HttpApi, HttpApiConfig, OrphanedRuns};
use toolyard_hub::{Budget, Profile, Surface};
use toolyard_mcp_server::{
    Access, AccessToken, HttpConfig, McpServer, ServerConfig, SessionKeys, SharedAccessRules, serve_http,
    serve_stdio,
};
use toolyard_store::Store;
use toolyard_telemetry::metrics::Metrics;

pub(super) use self::secrets::stored_token;
use self::{
    callers::CallerAuthentication,
    cluster::Cluster,
    operator::OperatorSettings,
    policies::record_policy_files,
    readiness::GatewayReadiness,
    reload::{RunningGateway, RunningHttp},
    secrets::Secrets,
};
use crate::{
    cli::ServeArgs,
    commands::setup::{build, close, gateway_builder, require_store, servers_setup},
    config::{
        CliContext, ServerCredentials,
        running_hubs::{ReloadRequests, RunningHub},
    },
    error::CliError,
    terminal::{
        Output, pluralize,
        progress::{HangupSignals, interrupt_signal, termination_signal},
    },
};

/// The endpoint that `toolyard call` uses, with the gateway's own token. The settings cannot have a profile of this name.
pub(super) const CALL_ENDPOINT: &str = "toolyard.call";
const DEFAULT_ADDRESS: &str = "127.0.0.1:7300";
/// Minimum time for agents to release their runs on shutdown.
const MIN_AGENT_GRACE: Duration = Duration::from_secs(2);

pub(super) async fn run(arguments: ServeArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let serve = serve_settings(&arguments, context);
    let address = match (&arguments.http, arguments.stdio) {
        (Some(address), _) => Some(address.as_str()),
        (None, false) if std::io::stdin().is_terminal() => Some(DEFAULT_ADDRESS),
        (None, _) => None,
    };
    match address {
        Some(address) => Box::pin(run_http(address, &arguments, &serve, context, output)).await,
        None => run_stdio(&arguments, &serve, context, output).await,
    }
}

/// `[serve]`, completed by `[call]` and overridden by the command line.
fn serve_settings(arguments: &ServeArgs, context: &CliContext) -> ServeSettings {
    let mut serve = context.settings.serve.clone().with_call_timeout(&context.settings.call);
    if let Some(surface) = arguments.surface {
        serve.surface = surface;
        serve.profiles.values_mut().for_each(|profile| profile.surface = None);
    }
    serve
}

/// The profiles with endpoints of their own: those of the settings, and the one of `toolyard call`, which gets every tool by its
/// name and whole results.
fn http_profiles(serve: &ServeSettings) -> Result<Vec<Profile>, CliError> {
    let mut profiles = serve.profiles()?;
    let (surface, budget) = (Surface::Full, Budget::Unlimited);
    profiles.push(Profile { name: CALL_ENDPOINT.into(), surface, budget, ..serve.main_profile() });
    Ok(profiles)
}

async fn bind(address: &str) -> Result<(TcpListener, SocketAddr), CliError> {
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
    Ok((listener, address))
}

/// The address by which programs on this machine reach the gateway.
fn own_address(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

async fn run_http(
    address: &str,
    arguments: &ServeArgs,
    serve: &ServeSettings,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let (listener, address) = bind(address).await?;
    check_access(arguments, address)?;
    let profiles = http_profiles(serve)?;
    readiness::check_required_servers(&serve.required_servers, &context.servers)?;
    let secrets = Secrets::load(serve, context).await?;
    let (access, callers) = access(arguments, serve, &secrets, context)?;
    let is_interactive = std::io::stdin().is_terminal();
    // Without a terminal, SIGHUP does not mean that one was closed.
    let hangups = HangupSignals::listen();
    let requests = ReloadRequests::listen(&context.operator_file, &context.data_folder);

    let metrics = Arc::new(Metrics::default());
    let operator_secret = console::operator_secret()?;
    let sign_ins = sign_in::sign_ins(serve, own_address(address), &access)?;
    let credentials =
        sign_in::credentials(context, [secrets.token(), operator_secret.expose()], sign_ins.clone());
    let cluster = Cluster::join(context).await?;
    let toolyard =
        open_for_clients(context, Some(&metrics), Arc::clone(&credentials), cluster.as_ref()).await?;
    let readiness = Arc::new(GatewayReadiness::new(&toolyard, serve.required_servers.clone()));
    let agents = agent_service(serve, &toolyard, cluster.as_ref())?;
    let drain_period = drain::drain_period(serve, context.store.as_ref().map(Store::engine), is_interactive);
    let gateway = GatewayConfig {
        main_profile: serve.main_profile(),
        profiles,
        agents: agents.clone(),
        ..gateway_config(&toolyard, context)?
    };
    let main_tools = gateway.main_tools();
    let settings = Arc::new(OperatorSettings::new(context.reload().await?, arguments)?);
    let server = build_server(gateway, server_config(secrets.session_keys()?), cluster.as_ref());
    let api = HttpApi::new(HttpApiConfig {
        agents: agents.clone(),
        main_tools: Some(main_tools.clone()),
        settings: Some(Arc::clone(&settings) as _),
        operator_sign_ins: Some(credentials as _),
        cluster: cluster.as_ref().map(Cluster::status),
        metrics: Some(metrics),
        metrics_access: context.settings.telemetry.metrics.access(),
        metrics_token: metrics_token(context)?,
        mcp_server: Some(Arc::clone(&server)),
        ..toolyard.http_api_config(serve.remote_approval.into())
    });
    let (api, console) = console::attach(api, &access, &secrets, operator_secret);
    let http = HttpConfig {
        access: access.clone(),
        legacy_sse: arguments.legacy_sse,
        readiness: Some(Arc::clone(&readiness) as _),
        routes: Some(Arc::new(sign_in::attach(api, sign_ins.as_ref(), &server))),
        ..HttpConfig::new(Access::Open)
    };
    let own_address = own_address(address);
    // Before it says that it serves: other commands find it from then on.
    let hub = RunningHub::new(Some(format!("http://{own_address}/mcp")), !arguments.no_auth, context);
    let _announcement = hub.with_operator_secret(console.operator_secret.clone()).announce(context);
    banner::print(address, &toolyard, arguments, serve, &secrets, output);
    print_replica_notes(serve, arguments, context, output);
    if agents.is_some() {
        banner::print_agents(address, &toolyard, output);
    }
    banner::print_console(own_address, &console, output);
    let gateway = RunningGateway {
        arguments,
        context,
        toolyard: &toolyard,
        server,
        agents,
        http: Some(RunningHttp { access, callers, readiness, main_tools, settings, is_interactive, hangups }),
        requests,
    };
    gateway.serve(listener, http, cluster.as_ref(), (drain_period, is_interactive), output).await
}

/// The token that opens `/metrics` and nothing else.
fn metrics_token(context: &CliContext) -> Result<Option<AccessToken>, CliError> {
    let token = context.settings.telemetry.metrics_token(|name| std::env::var(name).ok())?;
    Ok(token.as_deref().map(AccessToken::new))
}

/// The server of a gateway, which may be one of a cluster.
fn build_server(
    gateway: GatewayConfig,
    mut config: ServerConfig,
    cluster: Option<&Cluster>,
) -> Arc<McpServer> {
    config.peers = cluster.map(Cluster::peers);
    let server = Arc::new(gateway.build(config));
    if let Some(cluster) = cluster {
        cluster.serve(&server);
    }
    server
}

fn print_replica_notes(serve: &ServeSettings, arguments: &ServeArgs, context: &CliContext, output: &Output) {
    for note in replicas::notes(serve, context.store.as_ref(), arguments.no_auth) {
        output.message(&format!("  note: {}; {}", note.detail, note.hint));
    }
}

/// Refuses an address at which other machines could use the gateway without a token.
fn check_access(arguments: &ServeArgs, address: SocketAddr) -> Result<(), CliError> {
    if !arguments.no_auth || address.ip().is_loopback() {
        return Ok(());
    }
    let message = format!("--no-auth is not allowed on {address}: other machines could reach it");
    Err(CliError::usage(message).with_hint("omit it: a token is generated"))
}

/// Which requests are accepted, and what tells their callers apart.
fn access(
    arguments: &ServeArgs,
    serve: &ServeSettings,
    secrets: &Secrets,
    context: &CliContext,
) -> Result<(SharedAccessRules, CallerAuthentication), CliError> {
    let callers = CallerAuthentication::default();
    let authenticator = callers.build(serve, context.store.as_ref())?;
    let rules = reload::access_rules(arguments, serve, secrets, authenticator);
    Ok((SharedAccessRules::new(rules), callers))
}

impl RunningGateway<'_> {
    /// Serves until the process is told to stop, then lets calls and runs end.
    async fn serve(
        mut self,
        listener: TcpListener,
        http: HttpConfig,
        cluster: Option<&Cluster>,
        (drain_period, is_interactive): (Duration, bool),
        output: &Output,
    ) -> Result<(), CliError> {
        let (toolyard, context, agents) = (self.toolyard, self.context, self.agents.clone());
        let server = Arc::clone(&self.server);
        let issuer = self.http.as_ref().and_then(|http| http.callers.oauth_verifier());
        let (drain_timeout, drain_deadline) = (http.drain_timeout, OnceLock::new());
        let (second_sender, second_receiver) = oneshot::channel();
        let first_signal = async {
            let _ = second_sender.send(graceful_stop_signal(is_interactive, drain_period, output).await);
            drain::drain(&server, drain_period).await;
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
            ended = serve_http(Arc::clone(&server), listener, http, first_signal) => ended,
            () = second_signal => {
                output.message("stopped at once");
                return Ok(());
            }
            () = server_log::watch(toolyard) => Ok(()),
            () = self.reload_when_asked() => Ok(()),
            () = resume_orphaned_runs(agents.as_ref(), output) => Ok(()),
            () = cluster::keep(cluster) => Ok(()),
            () = retention::keep(toolyard) => Ok(()),
            () = readiness::watch_store(toolyard) => Ok(()),
            () = callers::warn_of_unusable_issuer(issuer) => Ok(()),
            () = catalogue::follow(toolyard, context, cluster) => Ok(()),
        };
        if let Some(cluster) = cluster {
            cluster.drain(remaining(drain_deadline.get().copied())).await;
        }
        shut_down(toolyard, agents.as_ref(), drain_deadline.get().copied(), context, output).await?;
        if let Some(cluster) = cluster {
            cluster.leave().await;
        }
        ended.map_err(|error| CliError::failed(error.to_string()))
    }
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
    let requests = ReloadRequests::listen(&context.operator_file, &context.data_folder);
    let credentials = Arc::new(ServerCredentials::new(context));
    let toolyard = open_for_clients(context, None, credentials, None).await?;
    let keys = SessionKeys::random();
    let config = server_config(keys.map_err(|error| CliError::failed(error.to_string()))?);
    let agents = agent_service(serve, &toolyard, None)?.filter(|_| arguments.profile.is_none());
    let gateway = GatewayConfig {
        main_profile: profile,
        agents: agents.clone(),
        ..gateway_config(&toolyard, context)?
    };
    let server = Arc::new(gateway.build(config));
    let _announcement = RunningHub::new(None, false, context).announce(context);
    let mut running = RunningGateway {
        arguments,
        context,
        toolyard: &toolyard,
        server: Arc::clone(&server),
        agents: agents.clone(),
        http: None,
        requests,
    };
    let ended = tokio::select! {
        ended = serve_stdio(server, tokio::io::stdin(), tokio::io::stdout(), interrupt_signal()) => ended,
        () = running.reload_when_asked() => Ok(()),
    };
    shut_down(&toolyard, agents.as_ref(), None, context, output).await?;
    ended.map_err(|error| CliError::failed(error.to_string()))
}

/// A Toolyard whose operations are counted by the metrics, if there are any.
async fn open_for_clients(
    context: &CliContext,
    metrics: Option<&Arc<Metrics>>,
    credentials: Arc<ServerCredentials>,
    cluster: Option<&Cluster>,
) -> Result<Toolyard, CliError> {
    record_policy_files(context).await?;
    let mut servers = servers_setup(context);
    servers.host_environment = credentials;
    servers.tool_wrapper = cluster.map(Cluster::tool_wrapper);
    let mut builder = gateway_builder(context, servers, metrics).lazy_past_requests();
    if let Some(cluster) = cluster {
        builder = builder.owner(cluster.run_owner());
    }
    let toolyard = build(builder).await?;
    if let Some(cluster) = cluster {
        cluster.set_servers(&toolyard);
    }
    if let (Some(cluster), Some(settings)) = (cluster, &context.settings.cluster) {
        cluster.use_workers(&toolyard, settings).await?;
    }
    if metrics.is_some() {
        // A gateway on HTTP; one on stdio serves one client, which may not wait for others.
        catalogue::share(&toolyard, context, cluster);
    }
    Ok(toolyard)
}

/// The agents for clients: as configured, else if there is a model and the main profile is not restricted. Agents are limited
/// to the main profile.
fn agent_service(
    serve: &ServeSettings,
    toolyard: &Toolyard,
    cluster: Option<&Cluster>,
) -> Result<Option<AgentService>, CliError> {
    let lease = serve.run_lease()?;
    let is_unrestricted = serve.main_profile().allows_everything();
    let is_enabled =
        serve.agents.unwrap_or_else(|| is_unrestricted && !toolyard.agents().models().is_empty());
    if !is_enabled {
        return Ok(None);
    }
    let mut config = toolyard.agent_service_config(serve.main_profile(), serve.remote_approval.into(), lease);
    config.max_runs = serve.max_runs();
    config.peers = cluster.map(Cluster::peers);
    let agents = AgentService::new(config);
    if let Some(cluster) = cluster {
        cluster.serve_runs(&agents);
    }
    Ok(Some(agents))
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
    let local_profile = Some(CALL_ENDPOINT.into());
    Ok(GatewayConfig { skill_folders, journal, local_profile, ..toolyard.gateway_config() })
}

/// Completes when the process is to stop. A terminal that is closed stops it, too.
fn stop_signal(is_interactive: bool) -> BoxFuture<'static, ()> {
    if is_interactive { Box::pin(interrupt_signal()) } else { Box::pin(termination_signal()) }
}

/// Waits for the first signal, announces the shutdown, and returns the future of the second signal.
async fn graceful_stop_signal(
    is_interactive: bool,
    drain_period: Duration,
    output: &Output,
) -> BoxFuture<'static, ()> {
    stop_signal(is_interactive).await;
    let second = stop_signal(is_interactive);
    let accepting = match drain_period.as_secs() {
        0 => String::new(),
        seconds => format!("accepting requests for {seconds} s, then "),
    };
    output.message(&format!(
        "stopping: {accepting}waiting for in-flight calls; interrupt again to stop at once"
    ));
    second
}

/// Takes over background runs of processes that ended, and reports other unfinished ones. Never completes.
async fn resume_orphaned_runs(agents: Option<&AgentService>, output: &Output) {
    let Some(agents) = agents else { return std::future::pending().await };
    let mut is_failing = false;
    let report = |found: Result<OrphanedRuns, JournalError>| {
        let was_failing = std::mem::replace(&mut is_failing, found.is_err());
        match found {
            // The same failure is reported once.
            Err(error) if !was_failing => {
                tracing::warn!(%error, "failed to look for interrupted runs");
            }
            Err(_) => {}
            Ok(found) => print_orphaned_runs(found, output),
        }
    };
    agents.orphan_adopter().run(report).await;
}

fn print_orphaned_runs(found: OrphanedRuns, output: &Output) {
    if found.resumed > 0 {
        output.message(&format!("resumed {}", pluralize(found.resumed, "run")));
    }
    if found.not_resumed > 0 {
        output.message(&format!(
            "{}; list: toolyard runs list --unfinished, resume: toolyard runs resume",
            pluralize(found.not_resumed, "interrupted run")
        ));
    }
}

fn remaining(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(Instant::now()))
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
        () = termination_signal() => {
            output.message("stopped at once");
            Ok(())
        }
    }
}
