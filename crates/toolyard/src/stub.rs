//! Stand-ins for what the crates of agents and models do not have yet; deleted when they do.
#![expect(missing_docs, clippy::unused_async, reason = "a stand-in")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;
use toolyard_agent::{AgentParts, Ask, RunEnd, RunEvent, RunNews, RunWatcher};
use toolyard_core::{Approvals, JournalError, LoggedEvent, RunId, RunLog};

#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<(AtomicBool, Notify)>);

impl CancelToken {
    pub fn cancel(&self) {
        self.0.0.store(true, Ordering::SeqCst);
        self.0.1.notify_waiters();
    }
    pub fn is_cancelled(&self) -> bool {
        self.0.0.load(Ordering::SeqCst)
    }
    pub async fn cancelled(&self) {
        let waiting = self.0.1.notified();
        if !self.is_cancelled() {
            waiting.await;
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    #[error(transparent)]
    Log(#[from] JournalError),
    #[error("{0}")]
    Approvals(String),
    #[error("{run} {kind}")]
    OtherKind { run: RunId, kind: String },
    #[error("run {0} is over")]
    Over(RunId),
}

impl AgentError {
    pub fn hint(&self) -> Option<&'static str> {
        None
    }
}

pub async fn ask_to_stop(_approvals: &dyn Approvals, _run: &RunId, _by: &str) -> Result<(), AgentError> {
    Ok(())
}

#[derive(Debug, Clone)]
pub struct Agent(Arc<AgentParts>);

impl Agent {
    pub fn new(parts: AgentParts) -> Self {
        Self(Arc::new(parts))
    }
    pub async fn begin(&self, _ask: Ask) -> Result<RunId, AgentError> {
        Err(AgentError::Approvals(format!("{} cannot be asked yet", self.0.config.name)))
    }
    pub async fn drive(
        &self,
        _run: &RunId,
        _watcher: &dyn RunWatcher,
        _stop: &CancelToken,
    ) -> Result<RunEnd, AgentError> {
        Err(AgentError::Approvals(format!("{} cannot be asked yet", self.0.config.name)))
    }
}

#[derive(Debug, Default)]
pub struct Run;

pub async fn load(log: &dyn RunLog, run: &RunId) -> Result<(Run, Vec<LoggedEvent>), AgentError> {
    Ok((Run, log.events(run, 0).await?))
}
pub async fn cancel(_log: &dyn RunLog, _run: &RunId, _owner: &str) -> Result<(), AgentError> {
    Err(AgentError::Approvals("not yet".to_owned()))
}
pub async fn answer_question(
    approvals: &dyn Approvals,
    id: i64,
    allowed: bool,
    by: &str,
) -> Result<bool, AgentError> {
    let answer = if allowed { toolyard_core::Answer::Allow } else { toolyard_core::Answer::Deny };
    approvals.answer(id, answer, by).await.map_err(AgentError::Approvals)
}
pub fn replay<'a>(run: &'a RunId, events: &'a [LoggedEvent]) -> impl Iterator<Item = RunNews> + 'a {
    events.iter().filter_map(|logged| {
        let event: RunEvent = serde_json::from_str(logged.event.get()).ok()?;
        Some(RunNews::Event { run: run.clone(), number: logged.number, event })
    })
}
