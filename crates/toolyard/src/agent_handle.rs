//! A handle to ask one agent, and its answer.

use std::fmt;

use toolyard_agent::{AgentError, CancelToken, NoWatcher, RunEnd, RunWatcher};
use toolyard_core::RunId;

use crate::{Agents, Error, Toolyard};

impl Toolyard {
    /// A handle to an agent: `toolyard.agent("assistant").ask("…").await?`. An unknown agent or model is reported by `ask`.
    pub fn agent<'a>(&'a self, name: &'a str) -> AgentHandle<'a> {
        AgentHandle { agents: self.agents(), name, watcher: &NoWatcher }
    }
}

/// A handle to ask an agent.
#[derive(Clone, Copy)]
pub struct AgentHandle<'a> {
    agents: &'a Agents,
    name: &'a str,
    watcher: &'a dyn RunWatcher,
}

impl fmt::Debug for AgentHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentHandle").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> AgentHandle<'a> {
    /// The same agent with a watcher, which receives all updates of the run and decides on approvals.
    #[must_use]
    pub fn watched_by(mut self, watcher: &'a dyn RunWatcher) -> Self {
        self.watcher = watcher;
        self
    }

    /// Runs the agent on a question until it answers. A run that ends otherwise is an error; its steps are in the run log.
    pub async fn ask(&self, question: impl Into<String>) -> Result<AgentAnswer, Error> {
        let agent = self.agents.agent(self.name, None)?;
        let run = agent.create_run(agent.request(question)).await?;
        match agent.drive(&run, self.watcher, &CancelToken::default()).await? {
            RunEnd::Answered { answer, sources, .. } => Ok(AgentAnswer { run, text: answer, sources }),
            end => Err(Error::NotAnswered { run, end: Box::new(end) }),
        }
    }
}

/// An agent's answer. `Display` shows its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAnswer {
    /// The run that produced it.
    pub run: RunId,
    /// The answer.
    pub text: String,
    /// The tools and sources it is based on.
    pub sources: Vec<String>,
}

impl fmt::Display for AgentAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How a run ended, in a sentence for the user.
pub fn describe_end(end: &RunEnd) -> String {
    match end {
        RunEnd::Answered { answer, .. } | RunEnd::Partial { answer, .. } => answer.clone(),
        RunEnd::Planned => "the plan is ready; no tool was called".to_owned(),
        RunEnd::Failed { message, .. } | RunEnd::LimitReached { message, .. } => message.clone(),
        RunEnd::Suspended { .. } => "waiting for your decision".to_owned(),
        RunEnd::Cancelled => "the run was cancelled".to_owned(),
    }
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        Self::Agent(Box::new(error))
    }
}
