//! Why a run could not be started, resumed or driven to its end.

use toolyard_core::{ApprovalId, JournalError, RunId, StorageError};

use crate::RunError;

/// Why a run could not be started, resumed or driven to its end. The run itself keeps the state its log records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields without a comment are named after what they hold")]
pub enum AgentError {
    /// The run log rejected an operation or failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store could not read or write the approval requests of a run.
    ///
    /// Remedy: check the store with `toolyard store check`, then resume the run: `toolyard runs resume RUN`.
    #[error("failed to access the approval requests of a run: {0}")]
    Approvals(StorageError),
    /// The id belongs to a single journaled call or to another kind of run, which no agent can continue.
    ///
    /// Remedy: show it with `toolyard runs show RUN`; list the runs of agents with `toolyard runs list`.
    #[error("run {run} is not an agent run but a {kind}")]
    OtherKind { run: RunId, kind: String },
    /// An event in the log of the run cannot be parsed: a later version of Toolyard wrote it, or the store is damaged.
    ///
    /// Remedy: use the version that wrote the run, or check the store with `toolyard store check`; close the run with
    /// `toolyard runs cancel RUN`.
    #[error("event {number} of run {run} cannot be read: {reason}")]
    Unreadable {
        run: RunId,
        /// Position of the event in the log.
        number: i64,
        reason: String,
    },
    /// An event contradicts those before it: another version of Toolyard wrote the run, or the store is damaged.
    ///
    /// Remedy: use the version that wrote the run, or check the store with `toolyard store check`; close the run with
    /// `toolyard runs cancel RUN`.
    #[error("event {number} of run {run} is not valid here: {reason}")]
    InvalidEvent {
        run: RunId,
        /// Position of the event in the log.
        number: i64,
        reason: RunError,
    },
    /// The run has ended; a run that has ended cannot be continued.
    ///
    /// Remedy: show what it did with `toolyard runs show RUN`, and ask again to start a new run.
    #[error("run {0} has already finished")]
    Finished(RunId),
    /// The process stopped before the run ended. No call is in flight.
    ///
    /// See [`CancelToken::release`](crate::CancelToken::release).
    ///
    /// Remedy: resume it with `toolyard runs resume RUN`; a gateway of the same store resumes runs that were started
    /// over HTTP by itself.
    #[error("run {0} was released before it finished")]
    Released(RunId),
    /// The store did not accept a new run in time. The run is not executed, now or later.
    ///
    /// Remedy: check the store with `toolyard doctor`, then ask again.
    #[error("the store did not answer in time; the run was not started")]
    NotStarted,
    /// The approval was decided already, its run has ended, or the id is wrong.
    ///
    /// Remedy: list what waits for a decision: `toolyard runs list --unfinished`, then `toolyard runs show RUN`.
    #[error("no approval request has id {0}")]
    UnknownApproval(ApprovalId),
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
