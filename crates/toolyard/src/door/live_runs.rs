//! Runs that this process works on for clients: each has a task of its own, can be listened to, and can be stopped.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, broadcast, futures::Notified, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use toolyard_agent::{Agent, AgentError, Ask, CancelToken, RunEnd, RunNews};
use toolyard_core::{ErrorKind, RunId};
use toolyard_hub::surface::Profile;

use super::{
    begun::Begins,
    ears::{Client, Ears, Heard},
};
use crate::{Agents, AgentsError};

/// News that may wait for a slow listener; whoever misses some reads them from the log.
const WAITING_NEWS: usize = 1_024;
/// How long it may take to give back the runs that were dropped.
const GIVING_BACK: Duration = Duration::from_millis(250);

/// The runs that this process works on.
#[derive(Debug)]
pub(super) struct LiveRuns {
    pub(super) agents: Agents,
    /// Whether whoever comes in may allow what an agent asks.
    pub(super) approve: bool,
    open: Mutex<HashMap<RunId, LiveRun>>,
    /// Said whenever another run is worked on.
    began: Notify,
    tasks: Mutex<JoinSet<()>>,
    /// Nothing new is begun any more.
    closing: AtomicBool,
    /// Nothing is gone on with any more.
    leaving: AtomicBool,
}

/// Why a run was not begun.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotBegun {
    #[error("this hub is being stopped, and nothing was begun; ask again")]
    Closing,
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("nobody knows whether it was begun: see `toolyard runs list`")]
    Lost,
}

impl NotBegun {
    /// What it means for whoever called a tool.
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Closing => ErrorKind::Unavailable,
            Self::Agent(_) => ErrorKind::Failed,
            Self::Lost => ErrorKind::OutcomeUnknown,
        }
    }
}

/// On which terms agents are served at a door.
#[derive(Debug, Clone, Default)]
pub struct AgentTerms {
    /// What the door offers; agents see and call nothing else.
    pub within: Profile,
    /// Whether whoever comes in may also allow what an agent asks before it changes something. Whoever asks an agent
    /// would decide about it alone.
    pub approve: bool,
}

/// The agents of a yard as clients reach them, by whatever way; runs are worked on in this process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AgentDoor(pub(super) Arc<LiveRuns>);

impl AgentDoor {
    /// A door to these agents.
    pub fn new(agents: Agents, terms: AgentTerms) -> Self {
        Self(Arc::new(LiveRuns::new(agents, terms)))
    }

    /// Begins nothing any more, and lays down the runs that nobody waits for as soon as their calls have ended.
    pub fn close(&self) {
        self.0.closing.store(true, Ordering::SeqCst);
        self.0.lay_down(|live| !live.waited);
    }

    /// Lays down all runs, and waits for calls that are under way; what is not over by then is dropped, and free to be gone
    /// on with. How many runs were under way.
    pub async fn leave(&self, until: Instant) -> usize {
        self.0.closing.store(true, Ordering::SeqCst);
        self.0.leaving.store(true, Ordering::SeqCst);
        let under_way = self.0.lay_down(|_| true);
        // Whoever was being begun is laid down by a task that is made meanwhile.
        let mut tasks = JoinSet::new();
        let ended = timeout_at(until, async {
            loop {
                tasks = std::mem::take(&mut *self.0.tasks());
                if tasks.is_empty() {
                    break;
                }
                while tasks.join_next().await.is_some() {}
            }
        });
        if ended.await.is_err() {
            tasks.shutdown().await;
            let mut late = std::mem::take(&mut *self.0.tasks());
            late.shutdown().await;
            // Whoever is dropped gives its run back in a task of its own.
            tokio::time::sleep(GIVING_BACK).await;
        }
        under_way
    }
}

/// A run that is being worked on.
#[derive(Debug, Clone)]
pub(super) struct LiveRun {
    pub(super) stop: CancelToken,
    news: broadcast::Sender<Arc<RunNews>>,
    /// Somebody wants it to go on once it is laid down.
    again: Arc<AtomicBool>,
    /// Whether whoever began it waits for it.
    waited: bool,
}

impl LiveRun {
    /// Everything that happens from now on.
    pub(super) fn listen(&self) -> broadcast::Receiver<Arc<RunNews>> {
        self.news.subscribe()
    }
}

impl LiveRuns {
    pub(super) fn new(agents: Agents, terms: AgentTerms) -> Self {
        Self {
            agents: agents.within(terms.within),
            approve: terms.approve,
            open: Mutex::default(),
            began: Notify::new(),
            tasks: Mutex::default(),
            closing: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
        }
    }

    /// Writes a new run down and begins to work on it, all of it in a task of its own: whoever asks may be gone in the
    /// middle, and a run that is written down is known by the request that began it, and worked on.
    pub(super) async fn begin<T: Send + 'static>(
        self: &Arc<Self>,
        agent: Agent,
        ask: Ask,
        begins: Option<Begins>,
        go_on: impl FnOnce(&Arc<Self>, Agent, RunId) -> T + Send + 'static,
    ) -> Result<T, NotBegun> {
        if self.closing.load(Ordering::SeqCst) {
            return Err(NotBegun::Closing);
        }
        let (begun, told) = oneshot::channel();
        let runs = Arc::clone(self);
        let begin = async move {
            let request = begins.as_ref().map(|begins| Box::new(begins.mark().clone()));
            let run = agent.begin(Ask { request, ..ask }).await?;
            if let Some(begins) = begins {
                begins.began(&run);
            }
            Ok(go_on(&runs, agent, run))
        };
        // What nobody waits for any more is dropped: whoever drops a run decides what becomes of it.
        self.tasks().spawn(async move { drop(begun.send(begin.await)) });
        told.await.unwrap_or(Err(NotBegun::Lost))
    }

    /// Lays down these runs; how many are worked on.
    fn lay_down(&self, which: impl Fn(&LiveRun) -> bool) -> usize {
        let open = self.lock();
        open.values().filter(|live| which(live)).for_each(|live| live.stop.lay_down());
        open.len()
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
        self.work(agent, run, None, None)
    }

    /// Works on a new run in a task of its own; whoever asked hears everything.
    pub(super) fn go_on_heard(
        self: &Arc<Self>,
        agent: Agent,
        run: &RunId,
    ) -> (LiveRun, mpsc::UnboundedReceiver<Heard>) {
        let (heard, hearing) = mpsc::unbounded_channel();
        (self.work(agent, run, Some(heard), None), hearing)
    }

    /// The same; whoever asked is asked back what must be allowed, and what tools want to know.
    pub(super) fn go_on_asked(
        self: &Arc<Self>,
        agent: Agent,
        run: &RunId,
        client: Option<Client>,
    ) -> (LiveRun, mpsc::UnboundedReceiver<Heard>) {
        let (heard, hearing) = mpsc::unbounded_channel();
        (self.work(agent, run, Some(heard), client), hearing)
    }

    fn work(
        self: &Arc<Self>,
        agent: Agent,
        run: &RunId,
        heard: Option<mpsc::UnboundedSender<Heard>>,
        client: Option<Client>,
    ) -> LiveRun {
        let mut open = self.lock();
        if let Some(live) = open.get(run) {
            live.again.store(true, Ordering::SeqCst);
            return live.clone();
        }
        let news = broadcast::Sender::new(WAITING_NEWS);
        let (stop, waited) = (CancelToken::default(), heard.is_some());
        let live = LiveRun { stop, news, again: Arc::default(), waited };
        let is_closing = self.closing.load(Ordering::SeqCst) && !waited;
        if is_closing || self.leaving.load(Ordering::SeqCst) {
            // It is written down, and for whoever comes after us.
            live.stop.lay_down();
        }
        open.insert(run.clone(), live.clone());
        self.began.notify_waiters();
        let ears = Ears { news: live.news.clone(), heard, client };
        let (runs, run, live_run) = (Arc::clone(self), run.clone(), live.clone());
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let ended = runs.drive(&agent, &run, &ears, &live_run).await;
            match &ended {
                Err(error @ AgentError::LaidDown(_)) => tracing::info!(%error),
                Err(error) => tracing::warn!(%run, %error, "a run is left as it is"),
                Ok(_) => {}
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
        let mut leaves = Leaves { runs: self, run, is_gone: false };
        loop {
            let ended = agent.drive(run, ears, &live.stop).await;
            // Under the lock, so that nobody who wants it to go on believes that somebody works on it.
            let mut open = self.lock();
            let laid_down = matches!(ended, Ok(RunEnd::Suspended { .. }));
            if !(laid_down && live.again.swap(false, Ordering::SeqCst)) {
                open.remove(run);
                // Somebody else may work on it as soon as the lock is free.
                leaves.is_gone = true;
                return ended;
            }
        }
    }

    /// The agent that a run belongs to.
    pub(super) fn agent(&self, name: &str) -> Result<Agent, AgentsError> {
        self.agents.agent(name, None)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, LiveRun>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a run out of those that are worked on, however that ended.
struct Leaves<'a> {
    runs: &'a LiveRuns,
    run: &'a RunId,
    is_gone: bool,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if !self.is_gone {
            self.runs.lock().remove(self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Toolyard;

    #[tokio::test]
    async fn an_agent_sees_what_the_door_and_its_own_list_both_offer() {
        let settings = "[agents.clerk]\ntools = [\"*@excel\"]\n[approvals]\n";
        let settings = crate::Settings::parse(settings, "toolyard.toml".as_ref()).unwrap();
        let model = toolyard_model::ScriptedModel::saying(toolyard_model::ToolCalling::Schema, ["{}"]);
        let builder = Toolyard::builder().settings(settings).model(Arc::new(model));
        let yard = builder.build().await.unwrap();
        let within = Profile { deny: vec!["delete_*".to_owned()], ..Profile::default() };
        let door = AgentDoor::new(yard.agents().clone(), AgentTerms { within, approve: false });
        for (name, tool, source, sees) in [
            ("clerk", "read", "excel", true),
            ("clerk", "read", "files", false),
            ("clerk", "delete_row", "excel", false),
            ("assistant", "read", "files", true),
            ("assistant", "delete_row", "excel", false),
        ] {
            let agent = door.0.agent(name).unwrap();
            assert_eq!(agent.parts().config.may_see(tool, source), sees, "{name} {tool}@{source}");
        }
        assert!(
            yard.agents().config("assistant").unwrap().may_see("delete_row", "excel"),
            "elsewhere it may"
        );
    }
}
