//! [`RunWatcher`]: follows a run while it is driven and decides on its approval requests.

use std::sync::Arc;

use toolyard_core::{ApprovalId, ApprovalOutcome, BoxFuture, Caller};

use crate::RunUpdate;

/// Follows a run while it is driven, and may decide on its approval requests.
pub trait RunWatcher: Send + Sync {
    /// Called for every update. Must not block.
    fn on_update(&self, update: &RunUpdate);

    /// Answers the input requests of this step's tool; `None` if nobody can.
    fn responder(&self, step: &str) -> Option<Arc<dyn Caller>> {
        let _ = step;
        None
    }

    /// Whether it approves every call in advance, as with `--yes`. Only then may a call be made whose arguments are too large
    /// to be shown.
    fn approves_everything(&self) -> bool {
        false
    }

    /// Decides on a tool call. `None` means that no approver is present: the run is suspended until one decides.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>>;
}

/// A tool call that needs an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Id of the request in the approval store.
    pub id: ApprovalId,
    /// The step.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// The tool's source.
    pub source: String,
    /// Every value of the arguments as JSON, secrets redacted. Long texts are written as beginning, length, hash and end; what
    /// stands for the omitted part is outside of quotes.
    pub arguments: String,
    /// The effects of the tool in a word, such as `writes`, `destructive` or `unverified effects`.
    pub effects: String,
    /// Repairs of the plan, and references that were resolved approximately.
    pub notes: Vec<String>,
}

/// An approver's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// Approve this call.
    Allow,
    /// Approve this call and every later call of this tool in this run.
    AllowAlways,
    /// Deny this call.
    Deny,
}

impl ApprovalDecision {
    /// The decision as it is stored.
    pub fn outcome(self) -> ApprovalOutcome {
        match self {
            Self::Allow => ApprovalOutcome::Approved,
            Self::AllowAlways => ApprovalOutcome::ApprovedForRun,
            Self::Deny => ApprovalOutcome::Denied,
        }
    }
}

/// Ignores updates and decides nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWatcher;

impl RunWatcher for NoWatcher {
    fn on_update(&self, _update: &RunUpdate) {}

    fn decide<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(std::future::ready(None))
    }
}
