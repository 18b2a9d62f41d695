//! The runs that this process drives for clients: one task each, observable and cancellable.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, broadcast, futures::Notified, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use toolyard_agent::{Agent, AgentConfig, AgentError, CancelToken, Chat, RunEnd, RunRequest, RunUpdate};
use toolyard_core::{CallerIdentity, ConversationId, ErrorKind, JournalError, QuotaExceeded, RunId};
use toolyard_hub::Profile;

use super::{
    config::{AgentLookupError, AgentServiceConfig},
    idempotency::Reservation,
    run_notice::RunNotice,
    run_observer::{RunClient, RunMessage, RunObserver},
    run_queue::RunQueue,
};

/// How long the store may take to accept a new run. Clients get a retryable error afterwards.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(2);

/// Updates buffered for a slow subscriber; a subscriber that misses some reads them from the run log.
pub(super) const MAX_BUFFERED_UPDATES: usize = 1_024;

#[derive(Debug)]
pub(super) struct ActiveRuns {
    pub(super) config: AgentServiceConfig,
    /// The profile, unless it allows everything.
    profile: Option<Arc<Profile>>,
    runs: Mutex<HashMap<RunId, ActiveRun>>,
    run_added: Notify,
    /// Runs that wait for a process that drives them.
    pub(super) queue: RunQueue,
    tasks: Mutex<JoinSet<()>>,
    /// Set when shutdown begins: no new runs are started.
    is_draining: AtomicBool,
    /// Set later: runs are released as soon as they are started.
    is_stopping: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// The gateway received SIGTERM and accepts no new runs.
    ///
    /// Remedy: send the request again: another replica, or the restarted gateway, executes it.
    #[error("the gateway is shutting down and did not start the run; retry")]
    ShuttingDown,
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    QuotaExceeded(#[from] Box<QuotaExceeded>),
    /// The gateway stopped, or lost the store, while a run was being started.
    ///
    /// Remedy: look for the run with `GET /api/v1/runs` (or `toolyard runs list`) before you repeat the request; send
    /// an `Idempotency-Key` to make repeating safe.
    #[error("unknown whether the run was started")]
    OutcomeUnknown,
}

impl StartError {
    /// The error class for the caller of a tool.
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::ShuttingDown => ErrorKind::Unavailable,
            Self::Agent(_) | Self::QuotaExceeded(_) if self.is_store_failure() => ErrorKind::Unavailable,
            Self::Agent(_) => ErrorKind::Failed,
            Self::QuotaExceeded(_) => ErrorKind::QuotaExceeded,
            Self::OutcomeUnknown => ErrorKind::OutcomeUnknown,
        }
    }

    /// Whether nothing was started because the store failed.
    pub(super) fn is_store_failure(&self) -> bool {
        match self {
            Self::Agent(error) => {
                matches!(error, AgentError::NotStarted | AgentError::Journal(JournalError::Storage(_)))
            }
            Self::QuotaExceeded(exceeded) => exceeded.store_error.is_some(),
            Self::ShuttingDown | Self::OutcomeUnknown => false,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct ActiveRun {
    pub(super) cancel: CancelToken,
    updates: broadcast::Sender<Arc<RunUpdate>>,
    /// Whether the run is to be resumed once it is suspended.
    resume_requested: Arc<AtomicBool>,
    /// Whether the client that started it waits for it.
    pub(super) is_observed: bool,
}

impl ActiveRun {
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Arc<RunUpdate>> {
        self.updates.subscribe()
    }
}

impl ActiveRuns {
    pub(super) fn new(config: AgentServiceConfig) -> Self {
        let profile = Some(Arc::new(config.profile.clone())).filter(|profile| !profile.allows_everything());
        Self {
            config,
            profile,
            runs: Mutex::default(),
            run_added: Notify::new(),
            queue: RunQueue::default(),
            tasks: Mutex::default(),
            is_draining: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// The agent of this name, for a caller that may use it. To others, it does not exist.
    pub(super) fn agent_for(
        &self,
        name: &str,
        identity: Option<&CallerIdentity>,
    ) -> Result<Agent, AgentLookupError> {
        if identity.is_none_or(|identity| identity.may_use_agent(name)) {
            self.agent(name)
        } else {
            Err(AgentLookupError::Unknown { name: name.to_owned(), known: self.agent_names(identity) })
        }
    }

    /// The names of the agents that a caller may use.
    pub(super) fn agent_names(&self, identity: Option<&CallerIdentity>) -> Vec<String> {
        let mut names = self.config.agents.names();
        names.retain(|name| identity.is_none_or(|identity| identity.may_use_agent(name)));
        names
    }

    /// The agent of this name, restricted to the profile.
    pub(super) fn agent(&self, name: &str) -> Result<Agent, AgentLookupError> {
        let mut parts = self.config.agents.parts(name)?;
        let config = AgentConfig::clone(&parts.config);
        parts.config = Arc::new(AgentConfig { profile: self.profile.clone(), ..config });
        let agent = Agent::new(parts).with_conversations(Arc::clone(&self.config.conversations));
        Ok(agent.with_lease_duration(self.config.lease))
    }

    /// Starts the run of a message and passes it to `spawn`, in a task of its own: the client may disconnect at any point, and a run that
    /// was created must be driven, and recorded under the idempotency key of its request. A run that the store did not accept
    /// by the deadline is not started, now or later.
    pub(super) async fn start<T: Send + 'static>(
        self: &Arc<Self>,
        agent: Agent,
        request: RunRequest,
        reservation: Option<Reservation>,
        deadline: Instant,
        spawn: impl FnOnce(&Arc<Self>, Agent, RunId) -> T + Send + 'static,
    ) -> Result<T, StartError> {
        if self.is_draining() {
            return Err(StartError::ShuttingDown);
        }
        agent.admit_model_use(request.identity.as_deref()).await?;
        let (sender, started) = oneshot::channel();
        let runs = Arc::clone(self);
        let start = async move {
            let fingerprint =
                reservation.as_ref().map(|reservation| Box::new(reservation.fingerprint().clone()));
            let request = RunRequest { fingerprint, authority: Some(Box::new(agent.authority())), ..request };
            let mut chat = runs.chat(request.conversation.as_deref().cloned(), deadline).await?;
            let run = chat.stream_chat_message(&agent, request, Some(deadline)).await?;
            if let Some(reservation) = reservation {
                reservation.complete(&run);
            }
            Ok(spawn(&runs, agent, run))
        };
        // If the client is gone, the result of `spawn` is dropped; its `Drop` cancels the run or lets it continue.
        self.tasks().spawn(async move { drop(sender.send(start.await)) });
        started.await.unwrap_or(Err(StartError::OutcomeUnknown))
    }

    /// The conversation with this id, or none.
    async fn chat(&self, id: Option<ConversationId>, deadline: Instant) -> Result<Chat, AgentError> {
        let log = Arc::clone(&self.config.log);
        let Some(id) = id else { return Ok(Chat::unrecorded(log)) };
        let opened = timeout_at(deadline, Chat::open(Arc::clone(&self.config.conversations), log, id)).await;
        let opened = opened.map_err(|_| AgentError::NotStarted)?;
        opened.map_err(|error| JournalError::Storage(error.to_string()).into())
    }

    /// Whether no new runs are started.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    pub(super) fn stop_accepting(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    pub(super) fn stop_driving(&self) {
        self.stop_accepting();
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Releases the matching runs; returns how many runs are active.
    pub(super) fn release(&self, matches: impl Fn(&ActiveRun) -> bool) -> usize {
        let runs = self.runs();
        runs.values().filter(|run| matches(run)).for_each(|run| run.cancel.release());
        runs.len()
    }

    /// The number of runs that this process drives.
    pub(super) fn active(&self) -> usize {
        self.runs().len()
    }

    /// The run, if this process drives it.
    pub(super) fn find(&self, run: &RunId) -> Option<ActiveRun> {
        self.runs().get(run).cloned()
    }

    /// Completes when another run becomes active.
    pub(super) fn run_added(&self) -> Notified<'_> {
        self.run_added.notified()
    }

    pub(super) fn take_tasks(&self) -> JoinSet<()> {
        std::mem::take(&mut *self.tasks())
    }

    /// How many further background runs this process may drive.
    pub(super) fn free_places(&self) -> usize {
        self.config.max_runs.saturating_sub(self.runs().len())
    }

    /// Whether this process may drive another background run.
    pub(super) fn has_capacity(&self) -> bool {
        self.free_places() > 0
    }

    /// Drives a run that no client waits for; at the limit of runs, leaves it to the process that has capacity first. If the run is
    /// active already, resumes it once it is suspended.
    pub(super) fn spawn(self: &Arc<Self>, agent: Agent, run: &RunId) {
        let active_runs = self.runs();
        if active_runs.len() >= self.config.max_runs && !active_runs.contains_key(run) {
            drop(active_runs);
            self.queue.push(run.clone());
            self.notify_peers(RunNotice::Queued, run);
            return;
        }
        self.spawn_driver(active_runs, agent, run, None, None);
    }

    /// Lets the process that drives a run, if any, apply a decision that was stored: on an approval, or to cancel the run.
    pub(super) fn notify_decision(&self, run: &RunId) {
        match self.find(run) {
            Some(active) => active.cancel.check_decisions(),
            None => self.notify_peers(RunNotice::Decided, run),
        }
    }

    /// Drives a new run for a client that waits for it; `client` is set if approval and input requests can be sent to it.
    pub(super) fn spawn_observed(
        self: &Arc<Self>,
        agent: Agent,
        run: &RunId,
        client: Option<RunClient>,
    ) -> (ActiveRun, mpsc::UnboundedReceiver<RunMessage>) {
        let (sender, messages) = mpsc::unbounded_channel();
        (self.spawn_driver(self.runs(), agent, run, Some(sender), client), messages)
    }

    fn spawn_driver(
        self: &Arc<Self>,
        mut active_runs: MutexGuard<'_, HashMap<RunId, ActiveRun>>,
        agent: Agent,
        run: &RunId,
        messages: Option<mpsc::UnboundedSender<RunMessage>>,
        client: Option<RunClient>,
    ) -> ActiveRun {
        if let Some(active) = active_runs.get(run) {
            active.resume_requested.store(true, Ordering::SeqCst);
            active.cancel.check_decisions();
            return active.clone();
        }
        let active = ActiveRun {
            cancel: CancelToken::default(),
            updates: broadcast::Sender::new(MAX_BUFFERED_UPDATES),
            resume_requested: Arc::default(),
            is_observed: messages.is_some(),
        };
        // While draining, a client that waits still gets its run driven to the end.
        let must_release = self.is_draining.load(Ordering::SeqCst) && !active.is_observed;
        if must_release || self.is_stopping.load(Ordering::SeqCst) {
            // The run is in the log; the next process resumes it.
            active.cancel.release();
        }
        active_runs.insert(run.clone(), active.clone());
        drop(active_runs);
        self.run_added.notify_waiters();
        let observer = RunObserver { updates: active.updates.clone(), messages, client };
        let (runs, run, driven_run) = (Arc::clone(self), run.clone(), active.clone());
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let ended = runs.drive(&agent, &run, &observer, &driven_run).await;
            match &ended {
                Err(error @ AgentError::Released(_)) => {
                    tracing::info!(%error);
                    runs.notify_peers(RunNotice::Queued, &run);
                }
                // Another process was faster to take over an orphaned run, or applies the decision that was made here.
                Err(error @ AgentError::Journal(JournalError::Leased { .. })) => tracing::debug!(%error),
                Err(error) => tracing::warn!(%run, %error, "agent run stopped before it finished"),
                Ok(_) => {}
            }
            if let Some(messages) = &observer.messages {
                // The client may be gone.
                let _ = messages.send(RunMessage::Ended(ended));
            }
        });
        active
    }

    /// Drives a run until it ends, or is suspended without a request to resume it.
    async fn drive(
        &self,
        agent: &Agent,
        run: &RunId,
        observer: &RunObserver,
        active: &ActiveRun,
    ) -> Result<RunEnd, AgentError> {
        let mut guard = RemoveOnDrop { runs: self, run, is_removed: false };
        loop {
            let ended = agent.drive(run, observer, &active.cancel).await;
            // Holding the lock, so that a concurrent request to resume either is seen here or spawns a new driver.
            let mut active_runs = self.runs();
            let is_suspended = matches!(ended, Ok(RunEnd::Suspended { .. }));
            if !(is_suspended && active.resume_requested.swap(false, Ordering::SeqCst)) {
                active_runs.remove(run);
                // Another driver may add the run again as soon as the lock is free.
                guard.is_removed = true;
                self.queue.wake();
                return ended;
            }
        }
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, ActiveRun>> {
        self.runs.lock()
    }
}

/// Removes a run from the active ones if its driver panics or is aborted.
struct RemoveOnDrop<'a> {
    runs: &'a ActiveRuns,
    run: &'a RunId,
    is_removed: bool,
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        if !self.is_removed {
            self.runs.runs().remove(self.run);
            self.runs.queue.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::testing::TestAgents;

    #[tokio::test]
    async fn an_agent_can_use_only_tools_of_the_profile_and_of_its_own_list() {
        let profile = Profile { deny: vec!["delete_*".to_owned()], ..Profile::default() };
        let agents = TestAgents::in_memory().with_agent("clerk", &["*@excel"]);
        let service = agents.service_with(profile, false);
        for (name, tool, source, is_usable) in [
            ("clerk", "read", "excel", true),
            ("clerk", "read", "files", false),
            ("clerk", "delete_row", "excel", false),
            ("assistant", "read", "files", true),
            ("assistant", "delete_row", "excel", false),
        ] {
            let agent = service.0.agent(name).unwrap();
            assert_eq!(agent.parts().config.can_use(tool, source), is_usable, "{name} {tool}@{source}");
        }
        let parts = service.0.config.agents.parts("assistant").unwrap();
        assert!(parts.config.can_use("delete_row", "excel"), "the profile applies to clients only");
    }
}
