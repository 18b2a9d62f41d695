//! The agents of a yard: who there is, what each is made of, and the short way to ask one.

use std::{collections::BTreeMap, fmt, sync::Arc};

use toolyard_agent::{
    Agent, AgentConfig, AgentError, AgentParts, ApprovalRules, Ask, CancelToken, Caps, DEFAULT_AGENT, O200k,
    RunEnd, RunWatcher, Unwatched,
};
use toolyard_core::{Approvals, ResultForms, RunId, RunLog};
use toolyard_hub::{ToolHub, surface::Profile};

use crate::{Error, Models, ModelsError, Toolyard, settings::AgentSettings};

/// Why an agent cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsError {
    /// None has this name.
    #[error("agent `{name}` does not exist; there are {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// It has no model to think with.
    #[error(transparent)]
    Models(#[from] ModelsError),
}

/// Everything that the agents of a yard have in common. Cheap to clone.
#[derive(Clone)]
pub struct Agents {
    pub(crate) hub: Arc<ToolHub>,
    pub(crate) described: Arc<BTreeMap<String, AgentSettings>>,
    pub(crate) rules: ApprovalRules,
    pub(crate) models: Models,
    pub(crate) log: Arc<dyn RunLog>,
    pub(crate) approvals: Arc<dyn Approvals>,
    pub(crate) forms: Option<Arc<dyn ResultForms>>,
    pub(crate) owner: String,
    /// What is offered where they are asked.
    pub(crate) within: Option<Arc<Profile>>,
}

impl Agents {
    /// The same agents, which see and call nothing but what this profile offers.
    #[must_use]
    pub fn within(mut self, profile: Profile) -> Self {
        self.within = Some(Arc::new(profile)).filter(|profile| !profile.is_open());
        self
    }

    /// All names; one exists without any settings.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.described.keys().cloned().collect();
        if !self.described.contains_key(DEFAULT_AGENT) {
            names.push(DEFAULT_AGENT.to_owned());
        }
        names
    }

    /// Who an agent is.
    pub fn config(&self, name: &str) -> Result<AgentConfig, AgentsError> {
        let config = match self.described.get(name) {
            Some(settings) => settings.config(name),
            None if name == DEFAULT_AGENT => AgentConfig::new(name),
            None => return Err(AgentsError::Unknown { name: name.to_owned(), known: self.names() }),
        };
        Ok(AgentConfig { within: self.within.clone(), ..config })
    }

    /// How much one question to an agent may use.
    pub fn caps(&self, name: &str) -> Caps {
        self.described.get(name).map(|settings| settings.limits.caps()).unwrap_or_default()
    }

    /// The agent of this name, ready to be asked; it thinks with its own model unless another one is named.
    pub fn agent(&self, name: &str, model: Option<&str>) -> Result<Agent, AgentsError> {
        let config = self.config(name)?;
        let model = self.models.get(model.or(config.model.as_deref()))?;
        Ok(Agent::new(AgentParts {
            config,
            hub: Arc::clone(&self.hub),
            model,
            log: Arc::clone(&self.log),
            approvals: Arc::clone(&self.approvals),
            rules: self.rules.clone(),
            forms: self.forms.clone(),
            counter: Arc::new(O200k),
            owner: self.owner.clone(),
        }))
    }

    /// The name of the model that an agent thinks with, unless another one is named.
    pub fn model_name(&self, name: &str, model: Option<&str>) -> Result<String, AgentsError> {
        Ok(self.models.meant(model.or(self.config(name)?.model.as_deref()))?)
    }

    /// A question to an agent, within the agent's limits.
    pub fn question(&self, name: &str, question: impl Into<String>) -> Ask {
        Ask {
            question: question.into(),
            agent: name.to_owned(),
            caps: self.caps(name),
            who: name.to_owned(),
            judge: self.described.get(name).is_some_and(|settings| settings.judge),
            ..Ask::default()
        }
    }

    /// The models.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// Where runs are kept.
    pub fn log(&self) -> &Arc<dyn RunLog> {
        &self.log
    }

    /// Where questions to persons are kept.
    pub fn approvals(&self) -> &Arc<dyn Approvals> {
        &self.approvals
    }

    /// The name under which this process works on runs.
    pub fn owner(&self) -> &str {
        &self.owner
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agents")
            .field("names", &self.names())
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

impl Toolyard {
    /// An agent, to be asked: `yard.agent("assistant").ask("…").await?`. Whether there is one, and a model for it, is told
    /// when it is asked.
    pub fn agent<'a>(&'a self, name: &'a str) -> YardAgent<'a> {
        YardAgent { agents: self.agents(), name, watcher: &Unwatched }
    }
}

/// An agent of a yard, to be asked.
#[derive(Clone, Copy)]
pub struct YardAgent<'a> {
    agents: &'a Agents,
    name: &'a str,
    watcher: &'a dyn RunWatcher,
}

impl fmt::Debug for YardAgent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("YardAgent").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> YardAgent<'a> {
    /// The same agent, watched: whoever watches sees everything that happens and may decide what waits for a person.
    #[must_use]
    pub fn watched_by(mut self, watcher: &'a dyn RunWatcher) -> Self {
        self.watcher = watcher;
        self
    }

    /// Asks, and waits for the answer. A question that ends without one is an error; what was done is in the log of runs.
    pub async fn ask(&self, question: impl Into<String>) -> Result<AgentAnswer, Error> {
        let agent = self.agents.agent(self.name, None)?;
        let run = agent.begin(self.agents.question(self.name, question)).await?;
        match agent.drive(&run, self.watcher, &CancelToken::default()).await? {
            RunEnd::Answered { answer, sources, .. } => Ok(AgentAnswer { run, text: answer, sources }),
            end => Err(Error::NotAnswered { run, end: Box::new(end) }),
        }
    }
}

/// What an agent answered. It is shown as its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAnswer {
    /// The run in which it was found.
    pub run: RunId,
    /// The answer.
    pub text: String,
    /// The tools and sources it rests on.
    pub sources: Vec<String>,
}

impl fmt::Display for AgentAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How a run ended, in a sentence for a person.
pub fn told(end: &RunEnd) -> String {
    match end {
        RunEnd::Answered { answer, .. } => answer.clone(),
        RunEnd::Planned => "there is a plan, and nothing was done".to_owned(),
        RunEnd::Failed { message, .. } | RunEnd::Capped { message, .. } => message.clone(),
        RunEnd::Suspended { waiting } => format!("it waits for a person: {}", waiting.join(", ")),
        RunEnd::Cancelled => "it was cancelled".to_owned(),
    }
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        Self::Agent(Box::new(error))
    }
}
