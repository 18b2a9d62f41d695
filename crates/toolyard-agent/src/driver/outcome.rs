//! [`TaskOutcome`]: the result of a task that was in flight.

use super::{
    approval::store::{Decision, PendingApproval},
    model::model_call::ModelOutcome,
    steps::{
        call::StepCallOutcome,
        prepare::{PrepareError, PreparedCall},
    },
};
use crate::{AgentError, ModelTask, RunEvent, Verification};

#[derive(Debug)]
pub(super) enum TaskOutcome {
    Prepared {
        step: String,
        outcome: Result<Box<PreparedCall>, PrepareError>,
    },
    Called {
        step: String,
        outcome: Box<StepCallOutcome>,
        milliseconds: u64,
    },
    Verified {
        step: String,
        verification: Verification,
    },
    ModelReplied {
        task: ModelTask,
        outcome: Box<ModelOutcome>,
    },
    ApprovalRequested {
        step: String,
        outcome: Result<Box<PendingApproval>, AgentError>,
    },
    ApprovalDecided {
        step: String,
        outcome: Result<Option<Decision>, AgentError>,
    },
    /// The stores were checked for decisions made elsewhere.
    DecisionsPolled {
        outcome: Result<Vec<RunEvent>, AgentError>,
    },
    /// Housekeeping finished; nothing follows from it.
    HousekeepingDone,
}
