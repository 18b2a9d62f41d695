//! An agent: everything that a run needs from outside, and the ways to begin one, watch it, and go on with it.

use std::{fmt, sync::Arc};

use toolyard_core::{Approvals, BoxFuture, RunLog};
use toolyard_hub::ToolHub;
use toolyard_model::Model;

use crate::{AgentConfig, ApprovalRules, RunNews, TokenCount};

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

/// Somebody who watches a run, and may decide at once what waits for a person.
pub trait RunWatcher: Send + Sync {
    /// Something happened. Must not wait.
    fn see(&self, news: &RunNews);

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
