//! `toolyard serve`: the hub as an MCP server, over HTTP or for whoever started us.

use std::{
    io::{ErrorKind, IsTerminal as _},
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{net::TcpListener, sync::oneshot, time::Instant};
use toolyard::{
    Toolyard,
    door::{self, AgentDoor, AgentPages, AgentTerms, LeftOpen, Served},
    settings::{JournalSetting, ServeSettings, SurfaceSetting},
};
use toolyard_mcp::{
    bridge::AskTheCaller,
    server::{Access, AccessToken, HttpConfig, ServerConfig, SessionKeys, serve_http, serve_stdio},
};

use super::{built, driving, kept, prepared, serve_log, serve_secrets::Secrets, setup};
use crate::{
    cli::{ServeArgs, SurfaceWord},
    failure::{Code, Failure},
    folders::Workplace,
    output::Output,
    progress::interrupted,
};

/// Where it is served if nobody says where.
const USUAL_ADDRESS: &str = "127.0.0.1:7300";
/// How long calls of agents may still take where nobody said how long, or where requests have used it up.
const SHORT_GRACE: Duration = Duration::from_secs(2);
/// A run is free so long after whoever worked on it was killed.
const LONGEST_LEASE: Duration = Duration::from_secs(35);

/// Serves until somebody says that it is enough.
pub(crate) async fn run(arguments: ServeArgs, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let serve = settings(&arguments, workplace);
    let address = match (&arguments.http, arguments.stdio) {
        (Some(address), _) => Some(address.as_str()),
        (None, false) if std::io::stdin().is_terminal() => Some(USUAL_ADDRESS),
        (None, _) => None,
    };
    match address {
        Some(address) => over_http(address, &arguments, &serve, workplace, output).await,
        None => over_stdio(&arguments, &serve, workplace, output).await,
    }
}

/// What is served, with the last word of the command line.
fn settings(arguments: &ServeArgs, workplace: &Workplace) -> ServeSettings {
    let mut serve = workplace.serve.clone();
    if let Some(surface) = arguments.surface {
        serve.surface = match surface {
            SurfaceWord::Full => SurfaceSetting::Full,
            SurfaceWord::Search => SurfaceSetting::Search,
            SurfaceWord::Auto => SurfaceSetting::Auto,
        };
        serve.profiles.values_mut().for_each(|profile| profile.surface = None);
    }
    serve
}

async fn over_http(
    address: &str,
    arguments: &ServeArgs,
    serve: &ServeSettings,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let unusable = |error: std::io::Error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => {
                "somebody serves there already, perhaps another hub; take another port: --http 127.0.0.1:7301"
            }
            _ => "an address is HOST:PORT, such as 127.0.0.1:7300",
        };
        Failure::new(Code::BadUse, format!("cannot serve at {address}: {error}")).with_hint(hint)
    };
    let listener = TcpListener::bind(address).await.map_err(unusable)?;
    let place = listener.local_addr().map_err(unusable)?;
    if arguments.no_auth && !place.ip().is_loopback() {
        let message = format!("--no-auth is refused at {place}: others could reach it");
        return Err(Failure::new(Code::BadUse, message).with_hint("leave it out: a token is made for you"));
    }
    let profiles = serve.profiles()?;
    let secrets = Secrets::of(serve, workplace)?;
    let access = match arguments.no_auth {
        true => Access::Open,
        false => Access::Token(AccessToken::new(secrets.token())),
    };
    let mut http = HttpConfig::new(access);
    http.hosts = serve.hosts.iter().chain(&arguments.allow_host).cloned().collect();
    http.origins = serve.origins.iter().chain(&arguments.allow_origin).cloned().collect();
    http.legacy_sse = arguments.legacy_sse;

    let until = OnceLock::new();
    let yard = yard(workplace).await?;
    let config = config(secrets.session_keys()?);
    let agents = serves_agents(serve, &yard);
    http.pages = agents.clone().map(|agents| Arc::new(AgentPages::new(agents)) as _);
    let drain_time = http.drain_time;
    let served =
        Served { main: serve.main_profile(), others: profiles, agents: agents.clone(), ..served(workplace)? };
    let server = Arc::new(door::server(&yard, config, served));
    tell(place, arguments, serve, &secrets, output);
    if agents.is_some() {
        tell_agents(place, &yard, output);
    }
    let (tell_again, again) = oneshot::channel();
    let stopping = async {
        let _ = tell_again.send(stopped(output).await);
        agents.iter().for_each(AgentDoor::close);
        let _ = until.set(Instant::now() + drain_time);
    };
    let hurried = async {
        match again.await {
            Ok(again) => again.await,
            // It ended by itself.
            Err(_) => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = serve_http(server, listener, http, stopping) => ended,
        () = hurried => {
            output.talk("stopped at once");
            return Ok(());
        }
        () = serve_log::watch(&yard, output) => Ok(()),
        () = take_over(agents.as_ref(), output) => Ok(()),
    };
    end(&yard, agents.as_ref(), until.get().copied(), workplace, output).await?;
    ended.map_err(|error| Failure::new(Code::Failed, error.to_string()))
}

async fn over_stdio(
    arguments: &ServeArgs,
    serve: &ServeSettings,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let profile = match &arguments.profile {
        Some(name) => serve.profile(name)?,
        None => serve.main_profile(),
    };
    let yard = yard(workplace).await?;
    let keys = SessionKeys::random();
    let config = config(keys.map_err(|error| Failure::new(Code::Failed, error.to_string()))?);
    let agents = serves_agents(serve, &yard).filter(|_| arguments.profile.is_none());
    let served = Served { main: profile, agents: agents.clone(), ..served(workplace)? };
    let server = Arc::new(door::server(&yard, config, served));
    let ended = serve_stdio(server, tokio::io::stdin(), tokio::io::stdout(), interrupted()).await;
    end(&yard, agents.as_ref(), None, workplace, output).await?;
    ended.map_err(|error| Failure::new(Code::Failed, error.to_string()))
}

/// The yard whose servers ask whoever calls them.
async fn yard(workplace: &Workplace) -> Result<Toolyard, Failure> {
    let mut servers = setup(workplace);
    servers.input = Arc::new(AskTheCaller);
    built(prepared(workplace, servers).searches_later()).await
}

/// The agents that clients may ask: as somebody said, or as soon as there is a model. They are held to what the main door
/// offers, and one that is there to show only some tools has none unless somebody said so.
fn serves_agents(serve: &ServeSettings, yard: &Toolyard) -> Option<AgentDoor> {
    let is_open = serve.main_profile().is_open();
    let serves = serve.agents.unwrap_or_else(|| is_open && !yard.agents().models().is_empty());
    let terms = AgentTerms { within: serve.main_profile(), approve: serve.approve };
    serves.then(|| AgentDoor::new(yard.agents().clone(), terms))
}

/// How agents are asked, for a person.
fn tell_agents(place: SocketAddr, yard: &Toolyard, output: &Output) {
    let names = yard.agents().names().join(", ");
    output.talk(&format!("  agents for clients of OpenAI's API: http://{place}/v1   (as model: {names})"));
    output.talk(&format!("  runs: POST http://{place}/runs, events at /runs/ID/events"));
    output.talk(
        "  what agents ask before they change something: toolyard runs list, toolyard runs approve RUN",
    );
    if let Ok(model) = yard.agents().models().meant(None) {
        driving::advise(yard, &model, output);
    }
}

fn config(sessions: SessionKeys) -> ServerConfig {
    let mut config = ServerConfig::new("toolyard", env!("CARGO_PKG_VERSION"), sessions);
    config.title = Some("Toolyard".to_owned());
    config
}

/// What is served besides profiles.
fn served(workplace: &Workplace) -> Result<Served, Failure> {
    let journal = workplace.settings.journal == JournalSetting::Always;
    if journal {
        kept(workplace)?;
    }
    let skill_folders =
        workplace.surroundings.skill_folders.iter().map(|folder| folder.path.clone()).collect();
    Ok(Served { skill_folders, journal, ..Served::default() })
}

/// Ends when somebody says that it is enough, says what happens then, and gives what hears a second word.
async fn stopped(output: &Output) -> impl Future<Output = ()> + Send + use<> {
    interrupted().await;
    let again = interrupted();
    output.talk("stopping: calls that are under way may end; again to stop at once");
    again
}

/// Goes on with runs that were begun to go on by themselves, and says what else was left open. Does not end.
async fn take_over(agents: Option<&AgentDoor>, output: &Output) {
    let Some(agents) = agents else { return std::future::pending().await };
    let found = found(agents, output).await;
    if found.left > 0 {
        output.talk(&format!(
            "{} of agents left open, and nobody works on them; see them: toolyard runs list --open, go on: toolyard runs resume",
            runs(found.left)
        ));
    }
    if found.held > 0 {
        // Whoever was killed holds its runs for a while.
        tokio::time::sleep(LONGEST_LEASE).await;
        self::found(agents, output).await;
    }
    std::future::pending::<()>().await;
}

async fn found(agents: &AgentDoor, output: &Output) -> LeftOpen {
    let found = agents.take_over().await.unwrap_or_else(|error| {
        output.talk(&format!("note: it is not known which runs were left open: {error}"));
        LeftOpen::default()
    });
    if found.taken_over > 0 {
        output.talk(&format!("goes on with {} that were begun here", runs(found.taken_over)));
    }
    found
}

fn runs(number: usize) -> String {
    if number == 1 { "1 run".to_owned() } else { format!("{number} runs") }
}

/// Lays down what agents are at, then stops the servers; a second word stops the waiting.
async fn end(
    yard: &Toolyard,
    agents: Option<&AgentDoor>,
    until: Option<Instant>,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let ending = async {
        if let Some(agents) = agents {
            let until = until.unwrap_or_else(|| Instant::now() + SHORT_GRACE);
            agents.leave(until.max(Instant::now() + SHORT_GRACE)).await;
        }
        super::close(yard, workplace).await
    };
    tokio::select! {
        closed = ending => closed,
        () = interrupted() => {
            output.talk("stopped at once");
            Ok(())
        }
    }
}

/// How to connect, for a person.
fn tell(place: SocketAddr, arguments: &ServeArgs, serve: &ServeSettings, secrets: &Secrets, output: &Output) {
    let url = format!("http://{place}/mcp");
    output.talk(&format!("serving at {url}"));
    for profile in serve.profiles.keys() {
        output.talk(&format!("  profile {profile} at {url}/{profile}"));
    }
    if arguments.legacy_sse {
        output.talk(&format!("  clients of the oldest kind at http://{place}/sse"));
    }
    if !place.ip().is_loopback() {
        output.talk("  note: whoever can see this network can read along; put TLS before it");
    }
    if arguments.no_auth {
        output.talk("  note: every program on this machine may come in (--no-auth)");
    } else {
        output.talk(&format!("  token: {}", secrets.shown(std::io::stderr().is_terminal())));
    }
    let at = if place.to_string() == USUAL_ADDRESS { String::new() } else { format!(" {url}") };
    output.talk(&format!(
        "  connect a client: toolyard connect claude --http{at}   (or cursor, vscode, codex, gemini)"
    ));
    if !arguments.no_auth {
        output.talk(&format!("  any other: Authorization: Bearer TOKEN, in a shell {}", secrets.shell()));
    }
}
