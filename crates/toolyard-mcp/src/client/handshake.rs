//! From a server's configuration to a live session: opens the transport, finds the era, introduces us.

use std::{pin::pin, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{
    sync::{broadcast, mpsc, watch},
    task::AbortHandle,
    time::{Instant, error::Elapsed, sleep, timeout, timeout_at},
};
use toolyard_core::{ProtocolEra, RawJson, SourceId};

use super::{
    Exchange, Heard, InputHandler, RequestError, Transport, TransportError,
    era::{self, AfterDiscover, AfterInitialize, LEGACY},
    http::StreamableHttp,
    http_caller::http_client,
    http_target::HttpTarget,
    listener,
    params::Speaker,
    session::{Ask, News, Parts, Session},
    sse::LegacySse,
    stdio::{self, StdioLaunch},
    subscription::{self, Interest},
};
use crate::{
    config::HttpKind,
    wire::{AboutServer, DiscoverResult, InitializeResult, JsonObject, RpcError, WireError, WireLimits},
};

/// How long a program may ignore `server/discover` before `initialize` is sent as well. Whoever is merely slow answers
/// the first one first, so nothing is decided by this.
const QUIET: Duration = Duration::from_secs(10);

/// How many changes of resources may wait for whoever follows them.
const UPDATES: usize = 256;
/// How long a session waits for the stream on which a server of the legacy era asks things.
const LISTEN_PATIENCE: Duration = Duration::from_secs(1);
/// Between two attempts to reach a program that is still starting.
const PROGRAM_PAUSE: Duration = Duration::from_millis(100);

/// Where a server is, with everything looked up that its configuration only refers to.
#[derive(Debug)]
pub enum Link {
    /// A program to start.
    Stdio(StdioLaunch),
    /// An address.
    Http(HttpTarget, HttpKind),
    /// An address, and the program to start when it does not answer.
    Program(StdioLaunch, HttpTarget, HttpKind),
}

/// How a connection is made.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The operator's name for the server.
    pub server: SourceId,
    /// The era it spoke last time, or the operator's word on it.
    pub era: Option<ProtocolEra>,
    /// How long it may take until it answers for the first time.
    pub startup_timeout: Duration,
    /// How much it may send.
    pub limits: WireLimits,
    /// Who answers what it asks back.
    pub input: Arc<dyn InputHandler>,
    /// Shared by all servers; none is made for one alone.
    pub client: Option<reqwest::Client>,
}

impl ConnectOptions {
    fn client(&self) -> Result<reqwest::Client, TransportError> {
        self.client.clone().map_or_else(http_client, Ok)
    }
}

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// It could not be reached, or broke off.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// It did not answer in time.
    #[error("it did not answer within {} s of its start{}", .after.as_secs_f64(), said(.last_words))]
    TimedOut {
        /// How long was waited.
        after: Duration,
        /// The end of what it said on its side channel.
        last_words: String,
    },
    /// It answered with an error.
    #[error("it refused: {0}")]
    Refused(RpcError),
    /// It speaks revisions that we do not.
    #[error("it speaks {0}, which is not known here")]
    UnknownVersion(String),
    /// Its answer is not one.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// It failed a moment ago and is left alone, or it is switched off.
    #[error("{reason}{}", retry(.left))]
    Resting {
        /// Why it is not tried.
        reason: String,
        /// For how long.
        left: Duration,
    },
    /// Its tools could not be remembered or looked up.
    #[error("its tools cannot be looked up: {0}")]
    Memory(String),
    /// Something it needs is not set.
    #[error("{0}")]
    Configuration(String),
}

fn said(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("; it said: {words}") }
}

fn retry(left: &Duration) -> String {
    if left.is_zero() {
        String::new()
    } else {
        format!("; it is tried again in {} s", left.as_secs_f64().ceil())
    }
}

impl From<RequestError> for ConnectError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Transport(error) => Self::Transport(error),
            RequestError::Rpc(error) => Self::Refused(error),
            RequestError::Malformed(error) => Self::Malformed(error),
            RequestError::Silent(after) => Self::TimedOut { after, last_words: String::new() },
            other => Self::Configuration(other.to_string()),
        }
    }
}

/// Connects to a server.
pub async fn connect(link: Link, options: &ConnectOptions) -> Result<Session, ConnectError> {
    let deadline = Instant::now() + options.startup_timeout;
    match link {
        Link::Stdio(launch) => over_stdio(launch, options, deadline).await,
        Link::Http(target, kind) => at_address(&target, kind, options, deadline).await,
        Link::Program(launch, target, kind) => match at_address(&target, kind, options, deadline).await {
            Err(ConnectError::Transport(TransportError::Unreachable(_))) => {
                started(launch, &target, kind, options, deadline).await
            }
            // Whoever answers there already is the server.
            answered => answered,
        },
    }
}

async fn at_address(
    target: &HttpTarget,
    kind: HttpKind,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Session, ConnectError> {
    if kind == HttpKind::Sse {
        return over_sse(target.clone(), options, deadline).await;
    }
    match over_http(target, options, deadline).await? {
        Some(session) => Ok(session),
        None if kind == HttpKind::Auto => over_sse(target.clone(), options, deadline).await,
        None => Err(TransportError::NotTheProtocol("neither era of Streamable HTTP".to_owned()).into()),
    }
}

/// Starts the program behind an address and asks there until it answers. It lives and dies with the session.
async fn started(
    launch: StdioLaunch,
    target: &HttpTarget,
    kind: HttpKind,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Session, ConnectError> {
    // Nothing is asked over its standard input; all that comes over its pipes is its end.
    let (exchange, mut heard) = Exchange::new(0);
    let exchange = Arc::new(exchange);
    let program = stdio::connect(launch, Arc::clone(&exchange), options.limits).await?;
    let session = loop {
        if let Some(error) = exchange.closed() {
            return Err(error.into());
        }
        match at_address(target, kind, options, deadline).await {
            Err(ConnectError::Transport(TransportError::Unreachable(_))) if Instant::now() < deadline => {
                sleep(PROGRAM_PAUSE).await;
            }
            Err(error) => {
                program.close().await;
                return Err(error);
            }
            Ok(session) => break session,
        }
    };
    let parts = Arc::clone(&session.parts);
    let watching = tokio::spawn(async move {
        while let Some(heard) = heard.recv().await {
            if let Heard::Closed(error) = heard {
                return parts.exchange.close(&error);
            }
        }
    });
    session.keep(watching.abort_handle());
    session.adopt(program);
    Ok(session)
}

async fn over_stdio(
    launch: StdioLaunch,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Session, ConnectError> {
    let (exchange, heard) = Exchange::new(options.limits.in_flight);
    let exchange = Arc::new(exchange);
    let transport = stdio::connect(launch, Arc::clone(&exchange), options.limits).await?;
    let opening = Opening::new(options, exchange, Box::new(transport), heard);
    let found = timeout_at(deadline, find_era(&opening.parts, options.era)).await;
    opening.settle(found, options.startup_timeout).await
}

async fn over_sse(
    target: HttpTarget,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Session, ConnectError> {
    let (exchange, heard) = Exchange::new(options.limits.in_flight);
    let exchange = Arc::new(exchange);
    let (client, left) = (options.client()?, deadline.saturating_duration_since(Instant::now()));
    let transport = LegacySse::connect(target, Arc::clone(&exchange), options.limits, client, left).await?;
    let opening = Opening::new(options, exchange, Box::new(transport), heard);
    let found = timeout_at(deadline, initialize(&opening.parts)).await;
    opening.settle(found, options.startup_timeout).await
}

/// A session over Streamable HTTP; none if the server seems to be of the first revision, which did not have it.
async fn over_http(
    target: &HttpTarget,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Option<Session>, ConnectError> {
    let (exchange, heard) = Exchange::new(options.limits.in_flight);
    let exchange = Arc::new(exchange);
    let transport =
        StreamableHttp::new(target.clone(), Arc::clone(&exchange), options.limits, options.client()?);
    let opening = Opening::new(options, exchange, Box::new(transport), heard);
    let found = timeout_at(deadline, find_era_at_address(&opening.parts, options.era)).await;
    match found {
        Ok(Ok(None)) => Ok(None),
        Ok(Ok(Some(found))) => opening.settle(Ok(Ok(found)), options.startup_timeout).await.map(Some),
        Ok(Err(error)) => opening.settle(Ok(Err(error)), options.startup_timeout).await.map(Some),
        Err(elapsed) => opening.settle(Err(elapsed), options.startup_timeout).await.map(Some),
    }
}

/// Finds the era at an address; none if it does not seem to know Streamable HTTP.
async fn find_era_at_address(
    parts: &Arc<Parts>,
    hint: Option<ProtocolEra>,
) -> Result<Option<Found>, ConnectError> {
    let legacy_before = hint == Some(ProtocolEra::Legacy);
    if !legacy_before && let Discovered::Modern(found) = discover(parts).await? {
        return Ok(Some(found));
    }
    let refusal = match initialize(parts).await {
        Err(ConnectError::Transport(failure)) => match era::after_initialize(failure) {
            AfterInitialize::OpenEvents => None,
            AfterInitialize::Failed(failure) => return Err(failure.into()),
        },
        Err(ConnectError::Refused(error)) => Some(error),
        found => return found.map(Some),
    };
    // What it spoke last time it does not speak now: it is asked as if it were new.
    if legacy_before && let Ok(Discovered::Modern(found)) = discover(parts).await {
        return Ok(Some(found));
    }
    refusal.map_or(Ok(None), |error| Err(ConnectError::Refused(error)))
}

/// What a server turned out to be.
struct Found {
    speaker: Speaker,
    about: AboutServer,
}

enum Discovered {
    Modern(Found),
    Legacy,
}

/// Finds the era on one connection that stays open, such as a program's. A program that ignores what it does not know is
/// asked in both ways; the answer decides, not the time it takes.
async fn find_era(parts: &Arc<Parts>, hint: Option<ProtocolEra>) -> Result<Found, ConnectError> {
    if hint == Some(ProtocolEra::Legacy) {
        match initialize(parts).await {
            // What it spoke last time it does not speak now: it is asked as if it were new.
            Err(ConnectError::Refused(_)) => {}
            found => return found,
        }
    }
    let mut asking = pin!(discover(parts));
    tokio::select! {
        discovered = &mut asking => return or_initialize(discovered?, parts).await,
        () = sleep(QUIET) => {}
    }
    let mut introducing = pin!(initialize(parts));
    let mut legacy = false;
    loop {
        tokio::select! {
            biased;
            discovered = &mut asking, if !legacy => match discovered? {
                Discovered::Modern(found) => return Ok(found),
                Discovered::Legacy => legacy = true,
            },
            found = &mut introducing => match found {
                // Of two questions it may have refused the one that is not for it.
                Err(ConnectError::Refused(_)) if !legacy => return or_initialize(asking.await?, parts).await,
                found => return found,
            },
        }
    }
}

async fn or_initialize(discovered: Discovered, parts: &Arc<Parts>) -> Result<Found, ConnectError> {
    match discovered {
        Discovered::Modern(found) => Ok(found),
        Discovered::Legacy => initialize(parts).await,
    }
}

async fn discover(parts: &Arc<Parts>) -> Result<Discovered, ConnectError> {
    let speaker = Speaker::modern(parts.input.capabilities());
    parts.transport.set_protocol_version(Some(speaker.version));
    let mut verdict = ask_modern(parts, &speaker).await?;
    if let Answered::Otherwise(AfterDiscover::Again(_)) = verdict {
        verdict = ask_modern(parts, &speaker).await?;
    }
    match verdict {
        Answered::Modern(about) => Ok(Discovered::Modern(Found { speaker, about })),
        Answered::Otherwise(AfterDiscover::Initialize) => Ok(Discovered::Legacy),
        Answered::Otherwise(AfterDiscover::Refused(error) | AfterDiscover::Again(error)) => {
            Err(ConnectError::Refused(error))
        }
        Answered::Otherwise(AfterDiscover::Failed(failure)) => Err(failure.into()),
    }
}

/// What came back on `server/discover`.
enum Answered {
    Modern(AboutServer),
    Otherwise(AfterDiscover),
}

async fn ask_modern(parts: &Arc<Parts>, speaker: &Speaker) -> Result<Answered, ConnectError> {
    let result = match parts.request_as(speaker, Ask::new("server/discover")).await {
        Ok(raw) => DiscoverResult::read(&raw),
        Err(RequestError::Rpc(error)) => return Ok(Answered::Otherwise(era::after_error(error))),
        Err(RequestError::Transport(failure)) => {
            return Ok(Answered::Otherwise(era::after_failure(failure)));
        }
        Err(other) => return Err(other.into()),
    };
    let versions = match result {
        Ok(result) if era::speaks_modern(&result.supported_versions) => {
            return Ok(Answered::Modern(result.about));
        }
        Ok(result) => result.supported_versions,
        // Some servers of the legacy era answer what they do not know with an empty result.
        Err(WireError::NotAnAnswer { .. }) => return Ok(Answered::Otherwise(AfterDiscover::Initialize)),
        Err(error) => return Err(error.into()),
    };
    if versions.iter().any(|version| era::legacy_version(version).is_some()) {
        Ok(Answered::Otherwise(AfterDiscover::Initialize))
    } else {
        Err(ConnectError::UnknownVersion(versions.join(", ")))
    }
}

async fn initialize(parts: &Arc<Parts>) -> Result<Found, ConnectError> {
    let [newest, ..] = LEGACY;
    let speaker = Speaker::modern(parts.input.capabilities()).legacy(newest);
    parts.transport.set_protocol_version(None);
    let raw = parts.request_as(&speaker, Ask::new("initialize").with(speaker.introduction())).await?;
    let result = InitializeResult::read(&raw)?;
    let version = era::legacy_version(&result.protocol_version)
        .ok_or_else(|| ConnectError::UnknownVersion(result.protocol_version.clone()))?;
    Ok(Found { speaker: speaker.legacy(version), about: result.about })
}

/// A connection whose era is not known yet.
struct Opening {
    parts: Arc<Parts>,
    news: watch::Receiver<News>,
    listener: Listening,
}

/// A listener that ends with whoever has it, unless a session keeps it.
struct Listening(Option<AbortHandle>);

impl Drop for Listening {
    fn drop(&mut self) {
        // It holds the connection, which would stay open for ever.
        self.0.take().inspect(AbortHandle::abort);
    }
}

impl Opening {
    fn new(
        options: &ConnectOptions,
        exchange: Arc<Exchange>,
        transport: Box<dyn Transport>,
        heard: mpsc::Receiver<Heard>,
    ) -> Self {
        let parts = Arc::new(Parts {
            server: options.server.clone(),
            exchange,
            transport,
            speaker: ArcSwap::from_pointee(Speaker::modern(options.input.capabilities())),
            input: Arc::clone(&options.input),
            limits: options.limits,
            updated: broadcast::Sender::new(UPDATES),
        });
        let (sender, news) = watch::channel(News::default());
        let listener = tokio::spawn(listener::listen(Arc::clone(&parts), heard, sender)).abort_handle();
        Self { parts, news, listener: Listening(Some(listener)) }
    }

    async fn settle(
        self,
        found: Result<Result<Found, ConnectError>, Elapsed>,
        startup_timeout: Duration,
    ) -> Result<Session, ConnectError> {
        let error = match found {
            Ok(Ok(found)) => return Ok(self.finish(found).await),
            Ok(Err(error)) => error,
            Err(_elapsed) => ConnectError::TimedOut {
                after: startup_timeout,
                last_words: self.parts.transport.last_words().unwrap_or_default(),
            },
        };
        drop(self.listener);
        self.parts.transport.close().await;
        Err(error)
    }

    async fn finish(mut self, found: Found) -> Session {
        let (era, version) = (found.speaker.era, found.speaker.version);
        self.parts.transport.set_protocol_version(Some(version));
        self.parts.speaker.store(Arc::new(found.speaker));
        let session = Session::new(Arc::clone(&self.parts), self.news, found.about);
        if let Some(listener) = self.listener.0.take() {
            session.keep(listener);
        }
        match era {
            ProtocolEra::Legacy => {
                self.parts.notify("notifications/initialized", JsonObject::new()).await;
                let listening = self.parts.transport.open_listen_stream();
                // What a server asks before anyone listens is lost. Where nobody can be asked, nothing is.
                if *self.parts.input.capabilities().get() != *RawJson::empty_object().get() {
                    // Whoever takes longer gets a session all the same.
                    let _ = timeout(LISTEN_PATIENCE, listening).await;
                }
            }
            ProtocolEra::Modern => {
                if let Some(lists) = Interest::in_lists(&session.about().capabilities) {
                    session.keep(tokio::spawn(subscription::follow(self.parts, lists)).abort_handle());
                }
            }
        }
        session
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
