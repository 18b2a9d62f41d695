//! An agent: everything that a run needs from outside, and the ways to begin one, watch it, and go on with it.

use std::{fmt, sync::Arc, time::Duration};

use toolyard_core::{Approvals, BoxFuture, Caller, JournalError, ResultForms, RunId, RunLog};
use toolyard_hub::ToolHub;
use toolyard_model::Model;

use crate::{AgentConfig, ApprovalRules, RunError, RunNews, TokenCount};

/// How long a run stays this process's own without a heartbeat.
const LEASE: Duration = Duration::from_secs(30);
/// How long a tool may be silent. Whoever reports progress may go on.
const PATIENCE: Duration = Duration::from_mins(2);

/// What an agent is made of.
#[derive(Clone)]
pub struct AgentParts {
    /// Who it is.
    pub config: AgentConfig,
    /// The tools.
    pub hub: Arc<ToolHub>,
    /// The model it thinks with.
    pub model: Arc<dyn Model>,
    /// Where its runs are kept.
    pub log: Arc<dyn RunLog>,
    /// Where questions to persons are kept.
    pub approvals: Arc<dyn Approvals>,
    /// Which calls may be made without a person.
    pub rules: ApprovalRules,
    /// Where it is remembered what results look like, if anywhere.
    pub forms: Option<Arc<dyn ResultForms>>,
    /// How prompts are measured.
    pub counter: Arc<dyn TokenCount>,
    /// Who works on the runs: a name of this process.
    pub owner: String,
}

impl fmt::Debug for AgentParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentParts")
            .field("config", &self.config)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// An agent, ready to be asked. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Agent {
    pub(crate) parts: Arc<AgentParts>,
    pub(crate) lease: Duration,
    pub(crate) patience: Duration,
}

impl Agent {
    /// An agent of these parts.
    pub fn new(parts: AgentParts) -> Self {
        Self { parts: Arc::new(parts), lease: LEASE, patience: PATIENCE }
    }

    /// The same agent, whose runs are free again so long after its process ended.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// The same agent, which waits so long for a tool that is silent.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// What it is made of.
    pub fn parts(&self) -> &AgentParts {
        &self.parts
    }
}

/// Why a run cannot be begun or gone on with. The run itself stands where its log says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The log refuses or fails.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Questions cannot be asked or read.
    #[error("failed to ask a person: {0}")]
    Approvals(String),
    /// It is a run of another kind.
    #[error("run {run} is no run of an agent but a {kind}")]
    OtherKind {
        /// The run.
        run: RunId,
        /// What it is.
        kind: String,
    },
    /// What the log holds cannot be understood.
    #[error("transition {number} of run {run} cannot be understood: {reason}")]
    Unreadable {
        /// The run.
        run: RunId,
        /// The place of the transition.
        number: i64,
        /// Why.
        reason: String,
    },
    /// Transitions do not follow each other.
    #[error("transition {number} of run {run} does not follow: {reason}")]
    Impossible {
        /// The run.
        run: RunId,
        /// The place of the transition.
        number: i64,
        /// Why.
        reason: RunError,
    },
    /// The run is over.
    #[error("run {0} is over")]
    Over(RunId),
    /// It was laid down because whoever worked on it was told to; nothing of it is under way, and it can be gone on with.
    #[error("run {0} was laid down before its end; it can be gone on with")]
    LaidDown(RunId),
    /// There is no such question.
    #[error("there is no question {0}")]
    NoQuestion(i64),
}

impl AgentError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Journal(JournalError::Held { .. }) => {
                Some("wait until whoever works on it is done, or its lease is over")
            }
            Self::Journal(JournalError::LeaseLost(_)) => {
                Some("somebody else goes on with it: toolyard runs show")
            }
            Self::LaidDown(_) => Some("go on with it: toolyard runs resume"),
            Self::Journal(JournalError::UnknownRun(_)) => Some("list what there is: toolyard runs list"),
            Self::Unreadable { .. } | Self::Impossible { .. } => Some(
                "a later version of toolyard may have written it; look at it with `toolyard store check`",
            ),
            _ => None,
        }
    }
}

/// Somebody who watches a run, and may decide at once what waits for a person.
pub trait RunWatcher: Send + Sync {
    /// Something happened. Must not wait.
    fn see(&self, news: &RunNews);

    /// Who can be asked by a tool while it carries out a step, if anyone.
    fn caller(&self, step: &str) -> Option<Arc<dyn Caller>> {
        let _ = step;
        None
    }

    /// May this call be made? None: nobody is here to say; the run is suspended until somebody does.
    fn decide<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Option<ApprovalDecision>>;
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalQuestion {
    /// The number of the question.
    pub id: i64,
    /// The step.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// Where it lives.
    pub source: String,
    /// Its arguments, secrets removed.
    pub arguments: String,
    /// The effects of the tool in a word: writes, destructive.
    pub effects: String,
    /// Where something else was taken than what the plan refers to, in words.
    pub notes: Vec<String>,
}

/// A person's word on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// This time.
    Allow,
    /// This time, and every call of this tool in this run.
    AllowAlways,
    /// No.
    Deny,
}

/// Watches nothing and decides nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl RunWatcher for Unwatched {
    fn see(&self, _news: &RunNews) {}

    fn decide<'a>(&'a self, _question: &'a ApprovalQuestion) -> BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(std::future::ready(None))
    }
}
