//! [`RunHandle`]: a run in progress as a stream of its events.

use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::Stream;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use toolyard_agent::{
    Agent, AgentError, ApprovalDecision, ApprovalRequest, CancelToken, Effect, RunEnd, RunEvent, RunUpdate,
    RunWatcher,
};
use toolyard_core::{ApprovalId, BoxFuture, RunId};

use super::{AgentOutcome, Approver};
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
    effects: Arc<Mutex<Vec<Effect>>>,
}

/// The approvals of a run that are not decided yet.
#[derive(Default)]
struct Approvals {
    /// Those that the run waits for, by their id.
    waiting: BTreeMap<ApprovalId, (ApprovalRequest, oneshot::Sender<ApprovalDecision>)>,
    /// Decisions that came before the run began to wait: its event is sent a moment earlier.
    early: BTreeMap<ApprovalId, ApprovalDecision>,
}

type PendingApprovals = Arc<Mutex<Approvals>>;

impl RunHandle {
    pub(super) fn spawn(agent: Agent, id: RunId, approver: Option<Arc<dyn Approver>>) -> Self {
        let (sender, updates) = mpsc::unbounded_channel();
        let (pending, cancel) = (PendingApprovals::default(), CancelToken::new());
        let effects = Arc::<Mutex<Vec<Effect>>>::default();
        let watcher = StreamWatcher {
            updates: sender,
            pending: Arc::clone(&pending),
            approver,
            effects: Arc::clone(&effects),
        };
        let (run, token) = (id.clone(), cancel.clone());
        let task = tokio::spawn(async move { agent.drive(&run, &watcher, &token).await });
        Self { id, updates, pending, cancel, task: Some(task), effects }
    }

    /// The id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The next update; `None` when the run has ended or is suspended.
    pub async fn next(&mut self) -> Option<RunUpdate> {
        self.updates.recv().await
    }

    /// The calls that wait for [`RunHandle::decide`], with all their arguments. A call is in this list a moment after its event.
    pub fn pending_approvals(&self) -> Vec<ApprovalRequest> {
        self.pending.lock().waiting.values().map(|(request, _)| request.clone()).collect()
    }

    /// Decides on a call, by the id in its event
    /// ([`RunEvent::ApprovalRequested`](toolyard_agent::RunEvent::ApprovalRequested)). The first decision counts.
    pub fn decide(&self, approval_id: ApprovalId, decision: ApprovalDecision) {
        let mut approvals = self.pending.lock();
        match approvals.waiting.remove(&approval_id) {
            // Fails only if the run ended meanwhile.
            Some((_, sender)) => drop(sender.send(decision)),
            None => drop(approvals.early.entry(approval_id).or_insert(decision)),
        }
    }

    /// Cancels the run. Its stream ends once calls in flight have ended.
    pub fn cancel(&self) {
        self.cancel.cancel();
        // Calls that wait for a decision are not made.
        *self.pending.lock() = Approvals::default();
    }

    /// Waits until the run has ended or is suspended, and returns how. Remaining updates are dropped.
    pub async fn outcome(mut self) -> Result<AgentOutcome, Error> {
        while self.updates.recv().await.is_some() {}
        let end = match self.task.take() {
            Some(task) => match task.await {
                Ok(end) => end?,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => RunEnd::Cancelled,
            },
            None => RunEnd::Cancelled,
        };
        let effects = self.effects.lock().clone();
        Ok(AgentOutcome { run: self.id.clone(), end, effects })
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

/// Sends updates to the handle and asks it for decisions.
struct StreamWatcher {
    updates: mpsc::UnboundedSender<RunUpdate>,
    pending: PendingApprovals,
    approver: Option<Arc<dyn Approver>>,
    /// The receipt, once the run has ended.
    effects: Arc<Mutex<Vec<Effect>>>,
}

impl RunWatcher for StreamWatcher {
    fn on_update(&self, update: &RunUpdate) {
        if let RunUpdate::Event { event: RunEvent::Ended { effects: Some(effects), .. }, .. } = update {
            self.effects.lock().clone_from(effects);
        }
        // Fails only if the handle was dropped, which cancels the run.
        let _ = self.updates.send(update.clone());
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>> {
        if let Some(approver) = &self.approver {
            return approver.decide(request);
        }
        let (sender, decision) = oneshot::channel();
        let mut approvals = self.pending.lock();
        match approvals.early.remove(&request.id) {
            Some(early) => drop(sender.send(early)),
            None => drop(approvals.waiting.insert(request.id, (request.clone(), sender))),
        }
        Box::pin(async move { decision.await.ok() })
    }
}
