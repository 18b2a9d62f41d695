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
    time::{Instant, timeout},
};
use toolyard_core::{ContentHash, ProtocolEra, SourceInfo, SourceKind, Tool, ToolDefinition, ToolError};

use super::{
    ConnectError, ConnectOptions, Link, News, Offer, ServerEvent, ServerState, Session, common::Common,
    connect, host::Host, last_words::LastWords, offer::Lists, state::Lifecycle, tool::McpTool,
    watching::Watched,
};
use crate::{config::McpServerConfig, shelf::Shelf};

/// How much is remembered of what a server says on its side channel.
const LAST_WORDS: usize = 16 << 10;
/// How long a server may be silent when it is asked for its tools. All pages together get as long as its start.
const LIST_PATIENCE: Duration = Duration::from_secs(30);
/// The same for everything else it lists; nobody's call waits longer for that.
const OFFER_PATIENCE: Duration = Duration::from_secs(5);

/// What is remembered of a server.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) era: Option<ProtocolEra>,
    pub(super) shelf: Shelf,
    pub(super) offer: Offer,
}

/// One configured server.
#[derive(Debug)]
pub struct Server {
    pub(super) config: McpServerConfig,
    pub(super) host: Arc<Host>,
    pub(super) common: Arc<Common>,
    pub(super) lifecycle: Mutex<Lifecycle>,
    pub(super) slot: Mutex<Slot>,
    shelf: ArcSwap<Shelf>,
    offer: ArcSwap<Offer>,
    pub(super) watched: Mutex<Watched>,
    era: Mutex<Option<ProtocolEra>>,
    last_words: Arc<LastWords>,
    pub(super) used: Mutex<Instant>,
    /// Sessions that are being taken down; each tells when nothing of it is left.
    pub(super) leaving: Mutex<Vec<watch::Receiver<bool>>>,
    /// Lists are read and decided on one after the other.
    refreshing: tokio::sync::Mutex<()>,
    pub(super) reviving: AtomicBool,
    pub(super) retired: AtomicBool,
}

pub(super) type Start = watch::Receiver<Option<Result<Arc<Session>, ConnectError>>>;

#[derive(Debug)]
pub(super) enum Slot {
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
    pub(super) fn new(
        config: McpServerConfig,
        host: Arc<Host>,
        common: Arc<Common>,
        known: Option<Known>,
    ) -> Arc<Self> {
        let era = config.era.or(known.as_ref().and_then(|known| known.era));
        let lifecycle = Lifecycle::new(config.enabled, known.is_some());
        let (shelf, offer) = known.map(|known| (known.shelf, known.offer)).unwrap_or_default();
        let last_words = LastWords::new(LAST_WORDS, host.secrets_of(&config));
        let server = Arc::new(Self {
            config,
            host,
            common,
            lifecycle: Mutex::new(lifecycle),
            slot: Mutex::new(Slot::Empty),
            shelf: ArcSwap::from_pointee(shelf),
            offer: ArcSwap::from_pointee(offer),
            watched: Mutex::default(),
            era: Mutex::new(era),
            last_words: Arc::new(last_words),
            used: Mutex::new(Instant::now()),
            leaving: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
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

    /// What it offers besides tools.
    pub fn offer(&self) -> Arc<Offer> {
        self.offer.load_full()
    }

    /// Whether its tools are known, from earlier or from now.
    pub fn is_known(&self) -> bool {
        locked(&self.lifecycle).is_known()
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
        let mut start = {
            let mut slot = locked(&self.slot);
            if self.retired.load(Ordering::Acquire) {
                return Err(ConnectError::Configuration("it is not configured any more".to_owned()));
            }
            if wanted != Wanted::Again {
                self.touch();
            }
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
                // However long the start took, whoever waited for it is only now about to use it.
                self.touch();
            }
            wanted
        };
        let outcome = match outcome {
            Ok((session, seen)) if wanted => {
                tracing::info!(server = %self.config.id, era = ?session.era(), "server ready");
                tokio::spawn(Arc::clone(&self).mind(Arc::clone(&session), seen));
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

    /// Starts it, reads its tools and compares them with what was approved. Nothing is called before that. What had changed
    /// before its lists were read is given back as well: some servers tell of changes at once.
    async fn connected(self: &Arc<Self>) -> Result<(Arc<Session>, News), ConnectError> {
        // Two of one server at a time would get in each other's way, and an address may still be answered by the old one.
        self.all_left().await;
        locked(&self.leaving).retain(|gone| !*gone.borrow());
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
        let seen = session.news().borrow().clone();
        let before = self.offer();
        let offer = session.offer(&before, Lists::ALL, self.config.startup_timeout.min(OFFER_PATIENCE));
        match tokio::join!(self.refresh(&session), timeout(OFFER_PATIENCE, offer)) {
            (Ok(()), offer) => {
                if let Ok(offer) = offer {
                    self.take_offer(offer).await;
                }
                Ok((session, seen))
            }
            (Err(error), _) => {
                session.close().await;
                Err(error)
            }
        }
    }

    /// Reads what it offers besides tools anew.
    pub(super) async fn refresh_offer(&self, session: &Session, lists: Lists) {
        let _one_at_a_time = self.refreshing.lock().await;
        let before = self.offer();
        let offer = session.offer(&before, lists, LIST_PATIENCE).await;
        self.take_offer(offer).await;
    }

    async fn take_offer(&self, offer: Offer) {
        let before = self.offer();
        if *before == offer || self.retired.load(Ordering::Acquire) {
            return;
        }
        self.host.keep_offer(&self.config, &offer).await;
        let prompts = before.prompts != offer.prompts;
        let resources = (&before.resources, &before.templates, &before.skills)
            != (&offer.resources, &offer.templates, &offer.skills);
        self.offer.store(Arc::new(offer));
        if prompts {
            self.common.tell(ServerEvent::PromptsChanged(self.config.id.clone()));
        }
        if resources {
            self.common.tell(ServerEvent::ResourcesChanged(self.config.id.clone()));
        }
    }

    /// Reads the list anew and puts on the shelf what may be used of it.
    pub(super) async fn refresh(self: &Arc<Self>, session: &Session) -> Result<(), ConnectError> {
        let _one_at_a_time = self.refreshing.lock().await;
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
        // What a session says that is over by now does not count any more.
        if let Some(error) = session.closed() {
            return Err(error.into());
        }
        let concern = shelf.concern();
        self.shelf.store(Arc::new(shelf));
        self.register();
        locked(&self.lifecycle).ready(Instant::now(), concern);
        Ok(())
    }

    /// Hands the tools in service to whoever routes calls, all at once.
    fn register(self: &Arc<Self>) {
        // Under the lock that retiring takes: a server that is gone does not come back by a list that was on its way.
        let _slot = locked(&self.slot);
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

    /// Stops it; its tools stay known.
    pub async fn stop(self: &Arc<Self>) {
        let starting = {
            let mut slot = locked(&self.slot);
            match std::mem::replace(&mut *slot, Slot::Empty) {
                Slot::Live(session) => {
                    self.leave(&session);
                    None
                }
                Slot::Starting(start, given_up) => Some((start, given_up)),
                Slot::Empty => None,
            }
        };
        // The end is all that is of interest.
        if let Some((mut start, given_up)) = starting {
            given_up.notify_one();
            let _ = start.wait_for(Option::is_some).await;
        }
        self.all_left().await;
        if self.config.enabled {
            locked(&self.lifecycle).rest();
        }
    }

    /// Stops it for good: it is not configured any more.
    pub(super) async fn retire(self: &Arc<Self>) {
        {
            let _slot = locked(&self.slot);
            self.retired.store(true, Ordering::Release);
            self.host.registrar.remove(&self.config.id);
        }
        self.stop().await;
    }

    /// Puts tools into service that waited for a person, as the server sent them last.
    /// Only what was shown is approved: each tool is named with the hash of its definition.
    pub async fn approve(self: &Arc<Self>, tools: &[(String, ContentHash)]) -> Result<(), String> {
        let _one_at_a_time = self.refreshing.lock().await;
        let shelf = self.host.approve(&self.config, tools).await?;
        self.shelf.store(Arc::new(shelf));
        self.register();
        Ok(())
    }

    /// Every definition it ever had, by tool and oldest first, with dates.
    pub async fn definitions(&self) -> Result<Vec<ToolDefinition>, String> {
        self.host.cache.definitions(&self.config).await.map_err(|error| error.to_string())
    }

    /// Whether a tool may be called with this definition now.
    pub(super) fn check(&self, tool: &str, pin: ContentHash) -> Result<(), ToolError> {
        self.shelf.load().check(tool, pin).map_err(|error| error.on_source(&self.config.id))
    }

    pub(super) fn touch(&self) {
        *locked(&self.used) = Instant::now();
    }
}

/// Why a start came to nothing.
fn stopped() -> ConnectError {
    ConnectError::Resting { reason: "it was stopped while it was starting".to_owned(), left: Duration::ZERO }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
