//! [`Approver`]: decides on tool calls of agents that need an approval.

use std::fmt;

use toolyard_agent::{ApprovalDecision, ApprovalRequest};
use toolyard_core::BoxFuture;

impl fmt::Debug for dyn Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approver")
    }
}

/// Decides on tool calls of agents that need an approval. An async function `async fn(ApprovalRequest) -> ApprovalDecision` is
/// one.
pub trait Approver: Send + Sync {
    /// Decides on a call. `None` means that nobody decides now: the run is suspended until somebody does.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>>;
}

impl<F, Fut> Approver for F
where
    F: Fn(ApprovalRequest) -> Fut + Send + Sync,
    Fut: Future<Output = ApprovalDecision> + Send + 'static,
{
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>> {
        let decision = self(request.clone());
        Box::pin(async move { Some(decision.await) })
    }
}
