//! [`RunHandle`]: a run in progress as a stream of its events.

use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_util::Stream;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use toolyard_agent::{
    Agent, AgentError, ApprovalDecision, ApprovalRequest, CancelToken, RunEnd, RunUpdate, RunWatcher,
};
use toolyard_core::{BoxFuture, RunId};

use super::{AgentAnswer, Approver};
use crate::Error;

/// A run in progress: a [`Stream`] of its updates, and what a program can do with it meanwhile.
///
/// A call that needs an approval waits until [`RunHandle::decide`] is called, unless the handle of the agent has an approver.
/// Dropping the handle cancels the run.
pub struct RunHandle {
    id: RunId,
    updates: mpsc::UnboundedReceiver<RunUpdate>,
    pending: PendingApprovals,
    cancel: CancelToken,
    task: Option<JoinHandle<Result<RunEnd, AgentError>>>,
}

/// The approvals that a run waits for, by their id.
type PendingApprovals = Arc<Mutex<BTreeMap<i64, (ApprovalRequest, oneshot::Sender<ApprovalDecision>)>>>;

impl RunHandle {
    pub(super) fn spawn(agent: Agent, id: RunId, approver: Option<Arc<dyn Approver>>) -> Self {
        let (sender, updates) = mpsc::unbounded_channel();
        let (pending, cancel) = (PendingApprovals::default(), CancelToken::new());
        let watcher = StreamWatcher { updates: sender, pending: Arc::clone(&pending), approver };
        let (run, token) = (id.clone(), cancel.clone());
        let task = tokio::spawn(async move { agent.drive(&run, &watcher, &token).await });
        Self { id, updates, pending, cancel, task: Some(task) }
    }

    /// The id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The next update; `None` when the run has ended or is suspended.
    pub async fn next(&mut self) -> Option<RunUpdate> {
        self.updates.recv().await
    }

    /// The calls that wait for [`RunHandle::decide`].
    pub fn pending_approvals(&self) -> Vec<ApprovalRequest> {
        lock(&self.pending).values().map(|(request, _)| request.clone()).collect()
    }

    /// Decides on a call. Returns whether it was waiting.
    pub fn decide(&self, approval_id: i64, decision: ApprovalDecision) -> bool {
        let waiting = lock(&self.pending).remove(&approval_id);
        waiting.is_some_and(|(_, sender)| sender.send(decision).is_ok())
    }

    /// Cancels the run. Its stream ends once calls in flight have ended.
    pub fn cancel(&self) {
        self.cancel.cancel();
        // Calls that wait for a decision are not made.
        lock(&self.pending).clear();
    }

    /// Waits until the run has ended or is suspended, and returns how. Remaining updates are dropped.
    pub async fn outcome(mut self) -> Result<RunEnd, Error> {
        while self.updates.recv().await.is_some() {}
        match self.task.take() {
            Some(task) => match task.await {
                Ok(end) => Ok(end?),
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => Ok(RunEnd::Cancelled),
            },
            None => Ok(RunEnd::Cancelled),
        }
    }

    /// Waits for the answer. A run that ends otherwise is an error.
    pub async fn answer(self) -> Result<AgentAnswer, Error> {
        let run = self.id.clone();
        AgentAnswer::from_end(run, self.outcome().await?)
    }
}

impl Stream for RunHandle {
    type Item = RunUpdate;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunUpdate>> {
        self.updates.poll_recv(context)
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        if self.task.is_some() {
            self.cancel();
        }
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends updates to the handle and asks it for decisions.
struct StreamWatcher {
    updates: mpsc::UnboundedSender<RunUpdate>,
    pending: PendingApprovals,
    approver: Option<Arc<dyn Approver>>,
}

impl RunWatcher for StreamWatcher {
    fn on_update(&self, update: &RunUpdate) {
        // Fails only if the handle was dropped, which cancels the run.
        let _ = self.updates.send(update.clone());
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>> {
        if let Some(approver) = &self.approver {
            return approver.decide(request);
        }
        let (sender, decision) = oneshot::channel();
        lock(&self.pending).insert(request.id, (request.clone(), sender));
        Box::pin(async move { decision.await.ok() })
    }
}
