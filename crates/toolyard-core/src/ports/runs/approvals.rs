//! Approvals: requests that wait for a decision of the user, and the decisions, in a store that every front end shares.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, RunId, StorageError};

/// The id of a request for approval. Later requests have greater ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(pub i64);

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What is to be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A tool call.
    ToolCall,
    /// The cancellation of a run.
    Cancellation,
}

/// A request for approval, decided or pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalRecord {
    /// Identifies the request.
    pub id: ApprovalId,
    /// The run it belongs to.
    pub run: RunId,
    /// The step, if it is about one.
    pub step: Option<String>,
    /// What is to be approved.
    pub kind: ApprovalKind,
    /// What the user needs to know, with secrets redacted.
    pub text: String,
    /// The decision; none while it is pending.
    pub outcome: Option<ApprovalOutcome>,
    /// Who decided.
    pub decided_by: Option<String>,
    /// Milliseconds since 1970.
    pub requested_at: i64,
}

/// The decision of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalOutcome {
    /// This call is approved.
    Approved,
    /// Every call of the same tool in the same run is approved.
    ApprovedForRun,
    /// This call is denied.
    Denied,
}

impl ApprovalOutcome {
    /// Whether the call may be made.
    pub fn is_approved(self) -> bool {
        self != Self::Denied
    }
}

/// Stores requests for approval and decisions. The first decision counts.
pub trait Approvals: Send + Sync {
    /// Creates a request and returns its id.
    fn request_approval<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: ApprovalKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<ApprovalId, StorageError>>;

    /// Decides a request. Returns false if it was already decided.
    fn decide<'a>(
        &'a self,
        id: ApprovalId,
        outcome: ApprovalOutcome,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>>;

    /// One request.
    fn approval(&self, id: ApprovalId) -> BoxFuture<'_, Result<Option<ApprovalRecord>, StorageError>>;

    /// All requests without a decision, oldest first.
    fn pending_approvals(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, StorageError>>;

    /// All requests of one run, decided or pending, oldest first.
    fn approvals_of_run<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<ApprovalRecord>, StorageError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_number_in_json_and_text() {
        let id: ApprovalId = serde_json::from_str("7").unwrap();
        assert_eq!((serde_json::to_string(&id).unwrap(), id.to_string()), ("7".to_owned(), "7".to_owned()));
    }
}
