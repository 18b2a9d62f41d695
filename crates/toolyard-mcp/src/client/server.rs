//! One configured server: started when it is needed, by one start for everyone who waits, and minded while it lives.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until, timeout},
};
use toolyard_core::{ContentHash, ProtocolEra, SourceInfo, SourceKind, Tool, ToolError};

use super::{
    ConnectError, ConnectOptions, Link, ServerState, Session, connect, host::Host, last_words::LastWords,
    state::Lifecycle, tool::McpTool,
};
use crate::{config::McpServerConfig, shelf::Shelf};

/// How much is remembered of what a server says on its side channel.
const LAST_WORDS: usize = 16 << 10;
/// How long a server may be silent when it is asked for its tools. All pages together get as long as its start.
const LIST_PATIENCE: Duration = Duration::from_secs(30);
/// Changes of a list within this time are read together.
const SETTLING: Duration = Duration::from_millis(200);
/// A server that nobody asked for anything for this long is not revived any more; the next call starts it.
const REVIVED_FOR: Duration = Duration::from_secs(600);

/// What is remembered of a server.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) era: Option<ProtocolEra>,
    pub(super) shelf: Shelf,
}

/// One configured server.
#[derive(Debug)]
pub struct Server {
    pub(super) config: McpServerConfig,
    pub(super) host: Arc<Host>,
    lifecycle: Mutex<Lifecycle>,
    slot: Mutex<Slot>,
    shelf: ArcSwap<Shelf>,
    era: Mutex<Option<ProtocolEra>>,
    last_words: Arc<LastWords>,
    used: Mutex<Instant>,
    reviving: AtomicBool,
    retired: AtomicBool,
}

type Start = watch::Receiver<Option<Result<Arc<Session>, ConnectError>>>;

#[derive(Debug)]
enum Slot {
    Empty,
    /// Somebody may give it up.
    Starting(Start, Arc<Notify>),
    Live(Arc<Session>),
}

/// Who wants a server to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A call: a server that failed a moment ago is left alone.
    Call,
    /// A person: it is started in any case.
    Anyway,
    /// The plan to try again, which is no use of it.
    Again,
}

impl Server {
    /// A server with what was known of it.
    pub(super) fn new(config: McpServerConfig, host: Arc<Host>, known: Option<Known>) -> Arc<Self> {
        let era = config.era.or(known.as_ref().and_then(|known| known.era));
        let lifecycle = Lifecycle::new(config.enabled, known.is_some());
        let shelf = known.map(|known| known.shelf).unwrap_or_default();
        let last_words = LastWords::new(LAST_WORDS, host.secrets_of(&config));
        let server = Arc::new(Self {
            config,
            host,
            lifecycle: Mutex::new(lifecycle),
            slot: Mutex::new(Slot::Empty),
            shelf: ArcSwap::from_pointee(shelf),
            era: Mutex::new(era),
            last_words: Arc::new(last_words),
            used: Mutex::new(Instant::now()),
            reviving: AtomicBool::new(false),
            retired: AtomicBool::new(false),
        });
        server.register();
        server
    }

    /// Where it is in its life.
    pub fn state(&self) -> ServerState {
        locked(&self.lifecycle).state().clone()
    }

    /// Its configuration.
    pub fn config(&self) -> &McpServerConfig {
        &self.config
    }

    /// Its tools: in service, out of service, quarantined.
    pub fn shelf(&self) -> Arc<Shelf> {
        self.shelf.load_full()
    }

    /// The era it spoke last.
    pub fn era(&self) -> Option<ProtocolEra> {
        *locked(&self.era)
    }

    /// What it said on its side channel.
    pub fn last_words(&self) -> &LastWords {
        &self.last_words
    }

    /// The live session, if there is one.
    pub fn live(&self) -> Option<Arc<Session>> {
        match &*locked(&self.slot) {
            Slot::Live(session) if session.closed().is_none() => Some(Arc::clone(session)),
            _ => None,
        }
    }

    /// A live session: the one there is, the one somebody is waiting for already, or a new one.
    pub(super) async fn session(self: &Arc<Self>, wanted: Wanted) -> Result<Arc<Session>, ConnectError> {
        if wanted != Wanted::Again {
            self.touch();
        }
        let mut start = {
            let mut slot = locked(&self.slot);
            match &*slot {
                Slot::Live(session) if session.closed().is_none() => return Ok(Arc::clone(session)),
                Slot::Starting(start, _) => start.clone(),
                _ => {
                    self.admit(wanted)?;
                    let (sender, start) = watch::channel(None);
                    let given_up = Arc::new(Notify::new());
                    *slot = Slot::Starting(start.clone(), Arc::clone(&given_up));
                    locked(&self.lifecycle).starting(Instant::now());
                    // A task of its own: whoever asked first may give up, the others still wait.
                    tokio::spawn(Arc::clone(self).start(sender, given_up));
                    start
                }
            }
        };
        let outcome = start.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(ConnectError::Configuration("its start was given up".to_owned())))
    }

    fn admit(&self, wanted: Wanted) -> Result<(), ConnectError> {
        let allowed = locked(&self.lifecycle).may_start(Instant::now());
        match (allowed, wanted) {
            (Err((reason, left)), Wanted::Call) => Err(ConnectError::Resting { reason, left }),
            (Err((reason, Duration::ZERO)), Wanted::Anyway) if !self.config.enabled => {
                Err(ConnectError::Resting { reason, left: Duration::ZERO })
            }
            _ => Ok(()),
        }
    }

    async fn start(
        self: Arc<Self>,
        done: watch::Sender<Option<Result<Arc<Session>, ConnectError>>>,
        given_up: Arc<Notify>,
    ) {
        let outcome = tokio::select! {
            outcome = self.connected() => outcome,
            () = given_up.notified() => Err(stopped()),
        };
        // Whoever stopped it has taken its place already.
        let wanted = {
            let mut slot = locked(&self.slot);
            let wanted = matches!(&*slot, Slot::Starting(_, own) if Arc::ptr_eq(own, &given_up));
            if wanted {
                *slot = outcome.as_ref().map_or(Slot::Empty, |(session, _)| Slot::Live(Arc::clone(session)));
            }
            wanted
        };
        let outcome = match outcome {
            Ok((session, heard)) if wanted => {
                tracing::info!(server = %self.config.id, era = ?session.era(), "server ready");
                tokio::spawn(Arc::clone(&self).mind(Arc::clone(&session), heard));
                Ok(session)
            }
            Ok((session, _)) => {
                session.close().await;
                locked(&self.lifecycle).rest();
                Err(stopped())
            }
            Err(error) => {
                if wanted {
                    self.went_down(error.to_string());
                }
                Err(error)
            }
        };
        // Whoever waited may have given up.
        let _ = done.send(Some(outcome));
    }

    /// Starts it, reads its tools and compares them with what was approved. Nothing is called before that.
    async fn connected(self: &Arc<Self>) -> Result<(Arc<Session>, u64), ConnectError> {
        let link = self.host.link(&self.config, &self.last_words)?;
        let options = ConnectOptions {
            server: self.config.id.clone(),
            era: self.era(),
            startup_timeout: self.config.startup_timeout,
            limits: self.host.limits,
            input: Arc::clone(&self.host.input),
            client: match &link {
                Link::Http(..) | Link::Program(..) => Some(self.host.http()?),
                Link::Stdio(_) => None,
            },
        };
        let session = Arc::new(connect(link, &options).await?);
        match self.refresh(&session).await {
            Ok(heard) => Ok((session, heard)),
            Err(error) => {
                session.close().await;
                Err(error)
            }
        }
    }

    /// Reads the list anew and puts on the shelf what may be used of it.
    async fn refresh(self: &Arc<Self>, session: &Session) -> Result<u64, ConnectError> {
        let heard = session.news().borrow().tools_changed;
        let list = if session.about().capabilities.tools {
            let limit = self.config.startup_timeout;
            let listed = timeout(limit, session.list_tools(limit.min(LIST_PATIENCE))).await;
            let late = |_elapsed| ConnectError::TimedOut { after: limit, last_words: String::new() };
            listed.map_err(late)??
        } else {
            Vec::new()
        };
        let era = session.era();
        *locked(&self.era) = Some(era);
        let shelf = self.host.review(&self.config, era, list).await?;
        let concern = shelf.concern();
        self.shelf.store(Arc::new(shelf));
        self.register();
        locked(&self.lifecycle).ready(Instant::now(), concern);
        Ok(heard)
    }

    /// Hands the tools in service to whoever routes calls, all at once.
    fn register(self: &Arc<Self>) {
        if !self.config.enabled || self.retired.load(Ordering::Acquire) {
            return;
        }
        let shelf = self.shelf();
        let tools = shelf
            .in_service
            .iter()
            .filter(|tool| self.config.tools.admits(&tool.spec.name))
            .map(|tool| Arc::new(McpTool::new(tool.clone(), Arc::clone(self))) as Arc<dyn Tool>)
            .collect();
        let source = SourceInfo::new(self.config.id.clone(), SourceKind::Mcp)
            .trusted(self.config.trusted)
            .exclusive(self.config.exclusive);
        self.host.registrar.replace(source, tools);
    }

    /// Watches over a live session: changed tools, its end, and whether anyone still needs it.
    /// `seen` is how many changes were heard before the list was read: some servers tell of one at once.
    async fn mind(self: Arc<Self>, session: Arc<Session>, mut seen: u64) {
        let mut news = session.news();
        loop {
            let idle = self.config.idle_stop.map(|limit| *locked(&self.used) + limit);
            tokio::select! {
                changed = news.changed() => {
                    let now = news.borrow_and_update().clone();
                    if let Some(error) = now.closed.or_else(|| changed.err().and(session.closed())) {
                        return self.lost(&session, error.to_string());
                    }
                    if now.tools_changed != seen {
                        sleep(SETTLING).await;
                        seen = news.borrow_and_update().tools_changed;
                        if let Err(error) = self.refresh(&session).await {
                            let concern = format!("its changed list could not be read: {error}");
                            locked(&self.lifecycle).ready(Instant::now(), Some(concern));
                        }
                    }
                }
                () = until(idle) => {
                    let due = self.config.idle_stop.is_some_and(|limit| locked(&self.used).elapsed() >= limit);
                    if due && session.busy() == 0 {
                        tracing::info!(server = %self.config.id, "server stopped, nobody needs it");
                        return self.stop().await;
                    }
                    // A call that takes longer than the limit keeps it alive.
                    self.touch();
                }
            }
        }
    }

    /// The session is of no use any more, whatever the reason; the next call gets another one.
    pub(super) fn lost(self: &Arc<Self>, session: &Arc<Session>, reason: String) {
        {
            let mut slot = locked(&self.slot);
            match &*slot {
                Slot::Live(live) if Arc::ptr_eq(live, session) => *slot = Slot::Empty,
                // Somebody noticed before.
                _ => return,
            }
        }
        let gone = Arc::clone(session);
        tokio::spawn(async move { gone.close().await });
        self.went_down(reason);
    }

    /// The session ended in good order: the next call begins a new one at once.
    pub(super) fn expired(&self, session: &Arc<Session>) {
        let mut slot = locked(&self.slot);
        if matches!(&*slot, Slot::Live(live) if Arc::ptr_eq(live, session)) {
            *slot = Slot::Empty;
            let gone = Arc::clone(session);
            tokio::spawn(async move { gone.close().await });
        }
    }

    fn went_down(self: &Arc<Self>, reason: String) {
        if self.retired.load(Ordering::Acquire) {
            return;
        }
        tracing::warn!(server = %self.config.id, reason, "server down");
        locked(&self.lifecycle).failed(Instant::now(), reason, fastrand::f64());
        if !self.reviving.swap(true, Ordering::AcqRel) {
            tokio::spawn(Arc::clone(self).revive());
        }
    }

    /// Tries again and again, ever more slowly, while anyone still wants it.
    async fn revive(self: Arc<Self>) {
        loop {
            let state = self.state();
            let ServerState::Down { retry_at, .. } = state else { break };
            sleep_until(retry_at).await;
            // In the meantime somebody may have stopped it, or started it.
            if self.retired.load(Ordering::Acquire) || !matches!(self.state(), ServerState::Down { .. }) {
                break;
            }
            let idle = locked(&self.used).elapsed();
            if idle > REVIVED_FOR {
                locked(&self.lifecycle).rest();
                break;
            }
            if self.session(Wanted::Again).await.is_ok() {
                break;
            }
        }
        self.reviving.store(false, Ordering::Release);
    }

    /// Stops it; its tools stay known.
    pub async fn stop(self: &Arc<Self>) {
        let slot = std::mem::replace(&mut *locked(&self.slot), Slot::Empty);
        match slot {
            Slot::Live(session) => session.close().await,
            Slot::Starting(mut start, given_up) => {
                given_up.notify_one();
                // Its end is all that is of interest.
                let _ = start.wait_for(Option::is_some).await;
            }
            Slot::Empty => {}
        }
        if self.config.enabled {
            locked(&self.lifecycle).rest();
        }
    }

    /// Stops it for good: it is not configured any more.
    pub(super) async fn retire(self: &Arc<Self>) {
        self.retired.store(true, Ordering::Release);
        self.host.registrar.remove(&self.config.id);
        self.stop().await;
    }

    /// Puts tools into service that waited for a person, as the server sent them last.
    pub async fn approve(self: &Arc<Self>, tools: &[String]) -> Result<(), String> {
        let shelf = self.host.approve(&self.config, tools).await?;
        self.shelf.store(Arc::new(shelf));
        self.register();
        Ok(())
    }

    /// Whether a tool may be called with this definition now.
    pub(super) fn check(&self, tool: &str, pin: ContentHash) -> Result<(), ToolError> {
        self.shelf.load().check(tool, pin).map_err(|error| error.on_source(&self.config.id))
    }

    fn touch(&self) {
        *locked(&self.used) = Instant::now();
    }
}

/// Why a start came to nothing.
fn stopped() -> ConnectError {
    ConnectError::Resting { reason: "it was stopped while it was starting".to_owned(), left: Duration::ZERO }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
