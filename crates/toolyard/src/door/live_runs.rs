//! Runs that this process works on for clients: each has a task of its own, can be listened to, and can be stopped.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::{Notify, broadcast, futures::Notified, mpsc, oneshot};
use toolyard_agent::{
    Agent, AgentError, ApprovalDecision, ApprovalQuestion, CancelToken, RunEnd, RunNews, RunWatcher,
};
use toolyard_core::{BoxFuture, RunId};

use crate::{Agents, AgentsError};

/// News that may wait for a slow listener; whoever misses some reads them from the log.
const WAITING_NEWS: usize = 1_024;

/// The runs that this process works on.
#[derive(Debug)]
pub(super) struct LiveRuns {
    pub(super) agents: Agents,
    open: Mutex<HashMap<RunId, LiveRun>>,
    /// Said whenever another run is worked on.
    began: Notify,
}

/// The agents of a yard as clients reach them, by whatever way; runs are worked on in this process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AgentDoor(pub(super) Arc<LiveRuns>);

impl AgentDoor {
    /// A door to these agents.
    pub fn new(agents: Agents) -> Self {
        Self(Arc::new(LiveRuns::new(agents)))
    }
}

/// A run that is being worked on.
#[derive(Debug, Clone)]
pub(super) struct LiveRun {
    pub(super) stop: CancelToken,
    news: broadcast::Sender<Arc<RunNews>>,
    /// Somebody wants it to go on once it is laid down.
    again: Arc<AtomicBool>,
}

/// What whoever began a run hears of it: everything, and how it ended.
#[derive(Debug)]
pub(super) enum Heard {
    News(RunNews),
    /// Whether a call may be made; the run goes on when that is answered.
    Asks(ApprovalQuestion, oneshot::Sender<Option<ApprovalDecision>>),
    Ended(Result<RunEnd, AgentError>),
}

impl LiveRun {
    /// Everything that happens from now on.
    pub(super) fn listen(&self) -> broadcast::Receiver<Arc<RunNews>> {
        self.news.subscribe()
    }
}

impl LiveRuns {
    pub(super) fn new(agents: Agents) -> Self {
        Self { agents, open: Mutex::default(), began: Notify::new() }
    }

    /// A run that is worked on here.
    pub(super) fn find(&self, run: &RunId) -> Option<LiveRun> {
        self.lock().get(run).cloned()
    }

    /// Ends when another run is worked on.
    pub(super) fn began(&self) -> Notified<'_> {
        self.began.notified()
    }

    /// Works on a run in a task of its own, unless that is done already.
    pub(super) fn go_on(self: &Arc<Self>, agent: Agent, run: &RunId) -> LiveRun {
        self.work(agent, run, None, false)
    }

    /// Works on a new run in a task of its own; whoever asked hears everything.
    pub(super) fn go_on_heard(
        self: &Arc<Self>,
        agent: Agent,
        run: &RunId,
    ) -> (LiveRun, mpsc::UnboundedReceiver<Heard>) {
        let (heard, hearing) = mpsc::unbounded_channel();
        (self.work(agent, run, Some(heard), false), hearing)
    }

    /// The same; whoever asked is asked back what must be allowed.
    pub(super) fn go_on_asked(
        self: &Arc<Self>,
        agent: Agent,
        run: &RunId,
    ) -> (LiveRun, mpsc::UnboundedReceiver<Heard>) {
        let (heard, hearing) = mpsc::unbounded_channel();
        (self.work(agent, run, Some(heard), true), hearing)
    }

    fn work(
        self: &Arc<Self>,
        agent: Agent,
        run: &RunId,
        heard: Option<mpsc::UnboundedSender<Heard>>,
        asks: bool,
    ) -> LiveRun {
        let mut open = self.lock();
        if let Some(live) = open.get(run) {
            live.again.store(true, Ordering::SeqCst);
            return live.clone();
        }
        let news = broadcast::Sender::new(WAITING_NEWS);
        let live = LiveRun { stop: CancelToken::default(), news, again: Arc::default() };
        open.insert(run.clone(), live.clone());
        self.began.notify_waiters();
        let ears = Ears { news: live.news.clone(), heard, asks };
        let (runs, run, live_run) = (Arc::clone(self), run.clone(), live.clone());
        tokio::spawn(async move {
            let ended = runs.drive(&agent, &run, &ears, &live_run).await;
            if let Err(error) = &ended {
                tracing::warn!(%run, %error, "a run is left as it is");
            }
            if let Some(heard) = &ears.heard {
                // Whoever asked may be gone.
                let _ = heard.send(Heard::Ended(ended));
            }
        });
        live
    }

    /// Works on a run until it is over, or laid down with nobody who wants it to go on; then it is not worked on any more.
    async fn drive(
        &self,
        agent: &Agent,
        run: &RunId,
        ears: &Ears,
        live: &LiveRun,
    ) -> Result<RunEnd, AgentError> {
        let leaves = Leaves { runs: self, run };
        loop {
            let ended = agent.drive(run, ears, &live.stop).await;
            // Under the lock, so that nobody who wants it to go on believes that somebody works on it.
            let mut open = self.lock();
            let laid_down = matches!(ended, Ok(RunEnd::Suspended { .. }));
            if !(laid_down && live.again.swap(false, Ordering::SeqCst)) {
                open.remove(run);
                drop(open);
                drop(leaves);
                return ended;
            }
        }
    }

    /// The agent that a run belongs to.
    pub(super) fn agent(&self, name: &str) -> Result<Agent, AgentsError> {
        self.agents.agent(name, None)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, LiveRun>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a run out of those that are worked on, however that ended.
struct Leaves<'a> {
    runs: &'a LiveRuns,
    run: &'a RunId,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.runs.lock().remove(self.run);
    }
}

/// Passes on what happens. Where nobody can say whether a call may be made, the run is suspended until somebody does.
struct Ears {
    news: broadcast::Sender<Arc<RunNews>>,
    heard: Option<mpsc::UnboundedSender<Heard>>,
    /// Whether whoever began the run is asked.
    asks: bool,
}

impl RunWatcher for Ears {
    fn see(&self, news: &RunNews) {
        // Nobody has to listen.
        let _ = self.news.send(Arc::new(news.clone()));
        if let Some(heard) = &self.heard {
            let _ = heard.send(Heard::News(news.clone()));
        }
    }

    fn decide<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(async move {
            let heard = self.heard.as_ref().filter(|_| self.asks)?;
            let (answer, answered) = oneshot::channel();
            heard.send(Heard::Asks(question.clone(), answer)).ok()?;
            answered.await.ok().flatten()
        })
    }
}
