//! [`RequestTask`]: a running request, polled by the connection that sends its response.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Sleep;
use toolyard_core::{BoxFuture, RevisionFamily, telemetry::RunningOperation};
use toolyard_mcp::RequestId;

use crate::{
    dispatch::{operation, outcome::Outcome},
    interaction::{
        cancellation::{CancellationGuard, CancellationRegistry},
        request_channel::RequestChannel,
    },
};

/// Input requests within this time of each other are sent together: legacy upstream servers send them one by one.
const INPUT_BATCH_WINDOW: Duration = Duration::from_millis(25);

/// A running request. It makes progress only while [`RequestTask::poll_event`] is called.
pub(crate) struct RequestTask {
    pub(crate) channel: Arc<RequestChannel>,
    future: Option<BoxFuture<'static, Outcome>>,
    /// The outcome, until all earlier messages have been sent.
    outcome: Option<Outcome>,
    /// Whether the request continues when its client disconnects.
    survives_disconnect: bool,
    cancellation: Option<CancellationGuard>,
    /// Recorded when the response is known; none without telemetry, and while the task is suspended.
    pub(crate) operation: Option<Box<RunningOperation>>,
    /// The number of pending batches, and the timer after which they are sent unless another batch comes.
    batch_window: Option<(usize, Pin<Box<Sleep>>)>,
}

/// What a task needs from its connection.
#[derive(Debug)]
pub(crate) enum TaskEvent {
    Message(Bytes),
    /// The task needs input, which the client provides with another request.
    InputRequired,
    Completed(Outcome),
    Cancelled,
}

impl RequestTask {
    pub(crate) fn new(channel: Arc<RequestChannel>, future: BoxFuture<'static, Outcome>) -> Self {
        Self {
            channel,
            future: Some(future),
            outcome: None,
            survives_disconnect: false,
            cancellation: None,
            operation: None,
            batch_window: None,
        }
    }

    /// Makes the task cancellable by its id.
    pub(crate) fn cancellable(mut self, registry: &Arc<CancellationRegistry>, id: &RequestId) -> Self {
        self.cancellation = Some(registry.register(&self.channel, id));
        self
    }

    /// Makes the task continue when its client disconnects.
    pub(crate) fn surviving_disconnect(mut self) -> Self {
        self.survives_disconnect = true;
        self
    }

    /// Makes the task end with its owner, and no longer cancellable by its id.
    pub(crate) fn without_cancellation(mut self) -> Self {
        self.cancellation = None;
        self.survives_disconnect = false;
        self
    }

    pub(crate) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<TaskEvent> {
        match self.poll_running(context) {
            Poll::Pending if self.channel.peer.family() == RevisionFamily::Modern => {
                self.poll_input_batch(context).map(|()| TaskEvent::InputRequired)
            }
            event => event,
        }
    }

    /// Ready when the batching window of input requests has passed.
    fn poll_input_batch(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let batches = self.channel.pending_batches();
        if batches == 0 {
            return Poll::Pending;
        }
        let batch_window = self.batch_window.take().filter(|(counted, _)| *counted == batches);
        let (_, window) = self.batch_window.insert(
            batch_window.unwrap_or_else(|| (batches, Box::pin(tokio::time::sleep(INPUT_BATCH_WINDOW)))),
        );
        let elapsed = window.as_mut().poll(context);
        if elapsed.is_ready() {
            self.batch_window = None;
        }
        elapsed
    }

    /// Polls the task; never returns [`TaskEvent::InputRequired`].
    pub(crate) fn poll_running(&mut self, context: &mut Context<'_>) -> Poll<TaskEvent> {
        self.channel.register_waker(context);
        if self.channel.is_cancelled() {
            (self.future, self.operation) = (None, None);
            return Poll::Ready(TaskEvent::Cancelled);
        }
        if let Some(message) = self.channel.next_message() {
            return Poll::Ready(TaskEvent::Message(message));
        }
        if let Some(future) = &mut self.future
            && let Poll::Ready(outcome) = future.as_mut().poll(context)
        {
            self.future = None;
            self.outcome = Some(outcome);
        }
        if let Some(message) = self.channel.next_message() {
            return Poll::Ready(TaskEvent::Message(message));
        }
        if let Some(outcome) = self.outcome.take() {
            self.end_operation(&outcome);
            return Poll::Ready(TaskEvent::Completed(outcome));
        }
        Poll::Pending
    }

    pub(crate) async fn next_event(&mut self) -> TaskEvent {
        poll_fn(|context| self.poll_event(context)).await
    }

    /// Records the operation with the response of its request.
    pub(crate) fn end_operation(&mut self, outcome: &Outcome) {
        operation::end(
            self.operation.take().map(|operation| *operation),
            outcome,
            self.channel.is_tool_error.load(Ordering::Relaxed),
        );
    }

    pub(crate) fn store_outcome(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for RequestTask {
    fn drop(&mut self) {
        let Some(mut future) =
            self.future.take().filter(|_| self.survives_disconnect && !self.channel.is_cancelled())
        else {
            if let Some(operation) = self.operation.take() {
                operation::end_dropped(*operation);
            }
            return;
        };
        // Legacy revisions: a disconnect does not cancel a request.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (channel, cancellation) = (Arc::clone(&self.channel), self.cancellation.take());
        let operation = self.operation.take().map(|operation| *operation);
        runtime.spawn(async move {
            let _cancellation = cancellation;
            let outcome = poll_fn(|context| {
                channel.register_waker(context);
                if channel.is_cancelled() {
                    Poll::Ready(None)
                } else {
                    future.as_mut().poll(context).map(Some)
                }
            })
            .await;
            if let Some(outcome) = outcome {
                operation::end(operation, &outcome, channel.is_tool_error.load(Ordering::Relaxed));
            }
        });
    }
}

impl fmt::Debug for RequestTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RequestTask").field("channel", &self.channel).finish_non_exhaustive()
    }
}
