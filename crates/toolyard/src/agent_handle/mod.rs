//! A handle to one agent: asks it, or starts a run whose events are a stream.

mod approver;
mod run_handle;

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use toolyard_agent::{
    Agent, ApprovalDecision, ApprovalRequest, CancelToken, Effect, NoWatcher, RunEnd, RunEvent, RunLimits,
    RunRequest, RunUpdate, RunWatcher,
};
use toolyard_core::{BoxFuture, Caller, RunId};
use toolyard_model::ModelMessage;

pub use approver::Approver;
pub use run_handle::RunHandle;

use crate::{Error, Toolyard};

impl Toolyard {
    /// A handle to an agent: `toolyard.agent("assistant").ask("…").await?`. An unknown agent or model is reported by `ask`.
    pub fn agent<'a>(&'a self, name: &'a str) -> AgentHandle<'a> {
        AgentHandle {
            toolyard: self,
            name,
            watcher: &NoWatcher,
            approver: self.approver.clone(),
            conversation: None,
            history: Vec::new(),
            limits: None,
            plan_only: false,
            dry_run: false,
        }
    }
}

/// A handle to ask an agent.
#[derive(Clone)]
#[must_use]
pub struct AgentHandle<'a> {
    toolyard: &'a Toolyard,
    name: &'a str,
    watcher: &'a dyn RunWatcher,
    approver: Option<Arc<dyn Approver>>,
    conversation: Option<String>,
    history: Vec<ModelMessage>,
    limits: Option<RunLimits>,
    plan_only: bool,
    dry_run: bool,
}

impl fmt::Debug for AgentHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentHandle").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> AgentHandle<'a> {
    /// The same agent with a watcher, which receives all updates of [`AgentHandle::ask`] and decides on approvals.
    pub fn watched_by(mut self, watcher: &'a dyn RunWatcher) -> Self {
        self.watcher = watcher;
        self
    }

    /// Decides on calls that need an approval: an async function of an [`ApprovalRequest`], or an [`Approver`].
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Continues the conversation of this name, or begins it. Questions and answers are kept in the store.
    pub fn conversation(mut self, name: impl Into<String>) -> Self {
        self.conversation = Some(name.into());
        self
    }

    /// Earlier messages, oldest first.
    pub fn history(mut self, messages: Vec<ModelMessage>) -> Self {
        self.history = messages;
        self
    }

    /// Replaces the limits of the agent.
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Stops after planning; no tool is called.
    pub fn plan_only(mut self) -> Self {
        self.plan_only = true;
        self
    }

    /// Calls only read-only tools and simulates the others.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Runs the agent on a question until it has answered, or ended in another way. A call that needs an approval suspends the
    /// run if neither an approver nor a watcher decides. An error means that the run could not be started or recorded.
    pub async fn ask(&self, question: impl Into<String>) -> Result<AgentOutcome, Error> {
        let (agent, run) = self.create_run(question.into()).await?;
        let watcher = ApprovingWatcher {
            watcher: self.watcher,
            approver: self.approver.as_deref(),
            effects: Mutex::default(),
        };
        let end = agent.drive(&run, &watcher, &CancelToken::default()).await?;
        let effects = watcher.effects.into_inner();
        Ok(AgentOutcome { run, end, effects })
    }

    /// Starts a run of a question in a task of its own and returns its events as a stream. Must be called in a Tokio runtime.
    pub async fn start(&self, question: impl Into<String>) -> Result<RunHandle, Error> {
        let (agent, run) = self.create_run(question.into()).await?;
        Ok(RunHandle::spawn(agent, run, self.approver.clone()))
    }

    async fn create_run(&self, question: String) -> Result<(Agent, RunId), Error> {
        self.toolyard.discover_servers().await;
        let agents = self.toolyard.agents();
        agents.refresh().await;
        let agent = agents.agent(self.name, None)?;
        let mut request = RunRequest {
            history: self.history.clone(),
            plan_only: self.plan_only,
            dry_run: self.dry_run,
            ..agent.request(question)
        };
        if let Some(limits) = &self.limits {
            request.limits = limits.clone();
        }
        let run = match &self.conversation {
            Some(name) => agents.chat(name).await?.stream_chat_message(&agent, request, None).await?,
            None => agent.create_run(request).await?,
        };
        Ok((agent, run))
    }
}

/// A watcher whose approvals are given by an approver, if there is one.
struct ApprovingWatcher<'a> {
    watcher: &'a dyn RunWatcher,
    approver: Option<&'a dyn Approver>,
    /// The receipt, once the run has ended.
    effects: Mutex<Vec<Effect>>,
}

impl RunWatcher for ApprovingWatcher<'_> {
    fn on_update(&self, update: &RunUpdate) {
        if let RunUpdate::Event { event: RunEvent::Ended { effects: Some(effects), .. }, .. } = update {
            self.effects.lock().clone_from(effects);
        }
        self.watcher.on_update(update);
    }

    fn responder(&self, step: &str) -> Option<Arc<dyn Caller>> {
        self.watcher.responder(step)
    }

    fn approves_everything(&self) -> bool {
        self.watcher.approves_everything()
    }

    fn decide<'r>(&'r self, request: &'r ApprovalRequest) -> BoxFuture<'r, Option<ApprovalDecision>> {
        match self.approver {
            Some(approver) => approver.decide(request),
            None => self.watcher.decide(request),
        }
    }
}

/// How a run of an agent ended. `Display` shows its answer, or says how it ended without one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentOutcome {
    /// The run; a suspended one can be continued.
    pub run: RunId,
    /// The answer and its sources, or why there is none.
    pub end: RunEnd,
    /// The receipt: what became of every planned call of a tool that may change something, from the records of the run.
    pub effects: Vec<Effect>,
}

impl AgentOutcome {
    /// The text of the answer; `None` if the run is suspended, failed, was cancelled or reached a limit.
    pub fn answer(&self) -> Option<&str> {
        self.end.answer()
    }
}

impl fmt::Display for AgentOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.end.fmt(f)
    }
}
