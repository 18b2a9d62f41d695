//! Why a run could not be started, resumed or driven to its end.

use toolyard_core::{JournalError, RunId, StorageError};

use crate::RunError;

/// Why a run could not be started, resumed or driven to its end. The run itself keeps the state its log records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields without a comment are named after what they hold")]
pub enum AgentError {
    /// The run log rejected an operation or failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The approval store failed.
    #[error("approval store failed: {0}")]
    Approvals(StorageError),
    /// The run was not created by an agent.
    #[error("run {run} is not an agent run but a {kind}")]
    OtherKind { run: RunId, kind: String },
    /// An event in the log cannot be parsed.
    #[error("event {number} of run {run} cannot be read: {reason}")]
    Unreadable {
        run: RunId,
        /// Position of the event in the log.
        number: i64,
        reason: String,
    },
    /// An event is not valid in the state that the events before it lead to.
    #[error("event {number} of run {run} is not valid here: {reason}")]
    InvalidEvent {
        run: RunId,
        /// Position of the event in the log.
        number: i64,
        reason: RunError,
    },
    /// The run has already finished.
    #[error("run {0} has already finished")]
    Finished(RunId),
    /// The run was released by [`CancelToken::release`](crate::CancelToken::release); no call is in flight and it can be resumed.
    #[error("run {0} was released before it finished")]
    Released(RunId),
    /// The store did not accept a new run in time. The run is not driven, now or later.
    #[error("the store did not answer in time; the run was not started")]
    NotStarted,
    /// No approval request has this id.
    #[error("no approval request has id {0}")]
    UnknownApproval(i64),
}

impl AgentError {
    /// What to do about the error.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Journal(JournalError::Leased { .. }) => {
                Some("in use by another process; retry shortly, or: toolyard runs cancel RUN")
            }
            Self::Journal(JournalError::LeaseLost(_)) => {
                Some("another process took over the run: toolyard runs show RUN")
            }
            Self::NotStarted => Some("retry; check the store: toolyard doctor"),
            Self::Released(_) => Some("resume it: toolyard runs resume RUN"),
            Self::Journal(JournalError::UnknownRun(_)) => Some("list runs: toolyard runs list"),
            Self::Unreadable { .. } | Self::InvalidEvent { .. } => {
                Some("a later version of toolyard may have written it; check the store: toolyard store check")
            }
            _ => None,
        }
    }
}
