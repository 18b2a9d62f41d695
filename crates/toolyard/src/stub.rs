//! Stand-ins for what the crates of agents and models do not have yet; deleted when they do.
#![expect(missing_docs, clippy::unused_async, reason = "a stand-in")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;
use toolyard_agent::{AgentParts, Ask, RunEnd, RunEvent, RunNews, RunWatcher};
use toolyard_core::{Approvals, JournalError, LoggedEvent, RunId, RunLog};
use toolyard_model::ModelError;

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
    Journal(#[from] JournalError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("{0}")]
    Other(String),
}

#[derive(Debug, Clone)]
pub struct Agent(Arc<AgentParts>);

impl Agent {
    pub fn new(parts: AgentParts) -> Self {
        Self(Arc::new(parts))
    }
    pub async fn begin(&self, _ask: Ask) -> Result<RunId, AgentError> {
        Err(AgentError::Other(format!("{} cannot be asked yet", self.0.config.name)))
    }
    pub async fn drive(
        &self,
        _run: &RunId,
        _watcher: &dyn RunWatcher,
        _stop: &CancelToken,
    ) -> Result<RunEnd, AgentError> {
        Err(AgentError::Other(format!("{} cannot be asked yet", self.0.config.name)))
    }
}

#[derive(Debug, Default)]
pub struct Run;

pub async fn load(log: &dyn RunLog, run: &RunId) -> Result<(Run, Vec<LoggedEvent>), AgentError> {
    Ok((Run, log.events(run, 0).await?))
}
pub async fn cancel(_log: &dyn RunLog, _run: &RunId, _owner: &str) -> Result<(), AgentError> {
    Err(AgentError::Other("not yet".to_owned()))
}
pub async fn answer_question(
    _log: &dyn RunLog,
    approvals: &dyn Approvals,
    id: i64,
    allowed: bool,
    by: &str,
) -> Result<bool, AgentError> {
    let answer = if allowed { toolyard_core::Answer::Allow } else { toolyard_core::Answer::Deny };
    approvals.answer(id, answer, by).await.map_err(AgentError::Other)
}
pub fn replay(events: &[LoggedEvent]) -> impl Iterator<Item = RunNews> {
    events.iter().filter_map(|logged| {
        let event: RunEvent = serde_json::from_str(logged.event.get()).ok()?;
        Some(RunNews::Event { run: "replayed".into(), number: logged.number, event })
    })
}

#[derive(Debug, Default)]
pub struct MemoryLog;

fn no<T: Send>() -> toolyard_core::JournalFuture<'static, T> {
    Box::pin(async { Err(JournalError::Failed("not yet".to_owned())) })
}

impl toolyard_core::Journal for MemoryLog {
    fn create_run<'a>(&'a self, _: &'a str, _: &'a toolyard_core::RawJson) -> toolyard_core::JournalFuture<'a, RunId> {
        no()
    }
    fn claim<'a>(&'a self, _: &'a RunId, _: &'a str, _: std::time::Duration) -> toolyard_core::JournalFuture<'a, toolyard_core::Lease> {
        no()
    }
    fn claim_next<'a>(&'a self, _: &'a str, _: &'a str, _: std::time::Duration) -> toolyard_core::JournalFuture<'a, Option<toolyard_core::Lease>> {
        no()
    }
    fn renew<'a>(&'a self, _: &'a toolyard_core::Lease, _: std::time::Duration) -> toolyard_core::JournalFuture<'a, ()> {
        no()
    }
    fn release<'a>(&'a self, _: &'a toolyard_core::Lease, _: toolyard_core::RunState) -> toolyard_core::JournalFuture<'a, ()> {
        no()
    }
    fn begin<'a>(&'a self, _: &'a toolyard_core::Lease, _: &'a toolyard_core::Intent) -> toolyard_core::JournalFuture<'a, toolyard_core::Begun> {
        no()
    }
    fn finish<'a>(&'a self, _: &'a toolyard_core::Lease, _: &'a str, _: &'a toolyard_core::StepOutcome) -> toolyard_core::JournalFuture<'a, ()> {
        no()
    }
    fn run<'a>(&'a self, _: &'a RunId) -> toolyard_core::JournalFuture<'a, toolyard_core::RunRecord> {
        no()
    }
    fn runs<'a>(&'a self, _: usize) -> toolyard_core::JournalFuture<'a, Vec<toolyard_core::RunRecord>> {
        no()
    }
    fn steps<'a>(&'a self, _: &'a RunId) -> toolyard_core::JournalFuture<'a, Vec<toolyard_core::StepRecord>> {
        no()
    }
    fn unknown(&self) -> toolyard_core::JournalFuture<'_, Vec<toolyard_core::StepRecord>> {
        no()
    }
    fn resolve<'a>(&'a self, _: &'a RunId, _: &'a str, _: toolyard_core::Resolution, _: &'a str) -> toolyard_core::JournalFuture<'a, ()> {
        no()
    }
}
impl RunLog for MemoryLog {
    fn append<'a>(&'a self, _: &'a toolyard_core::Lease, _: i64, _: &'a toolyard_core::RawJson) -> toolyard_core::JournalFuture<'a, ()> {
        no()
    }
    fn events<'a>(&'a self, _: &'a RunId, _: i64) -> toolyard_core::JournalFuture<'a, Vec<LoggedEvent>> {
        no()
    }
}
impl Approvals for MemoryLog {
    fn ask<'a>(&'a self, _: &'a RunId, _: Option<&'a str>, _: toolyard_core::QuestionKind, _: &'a str) -> toolyard_core::BoxFuture<'a, Result<i64, String>> {
        Box::pin(async { Err(String::new()) })
    }
    fn answer<'a>(&'a self, _: i64, _: toolyard_core::Answer, _: &'a str) -> toolyard_core::BoxFuture<'a, Result<bool, String>> {
        Box::pin(async { Err(String::new()) })
    }
    fn question(&self, _: i64) -> toolyard_core::BoxFuture<'_, Result<Option<toolyard_core::Question>, String>> {
        Box::pin(async { Err(String::new()) })
    }
    fn waiting(&self) -> toolyard_core::BoxFuture<'_, Result<Vec<toolyard_core::Question>, String>> {
        Box::pin(async { Err(String::new()) })
    }
}
