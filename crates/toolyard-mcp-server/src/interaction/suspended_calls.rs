//! [`SuspendedCalls`]: calls that wait for input from their clients, limited in number and time.

use std::{collections::HashMap, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::interaction::request_task::{RequestTask, TaskEvent};

#[derive(Debug, Default)]
pub(crate) struct SuspendedCalls {
    calls: Mutex<HashMap<u64, Arc<SuspendedCall>>>,
}

#[derive(Debug)]
struct SuspendedCall {
    task: Mutex<Option<RequestTask>>,
    taken: Notify,
}

impl SuspendedCalls {
    /// Suspends a call and returns its id; none if there are too many.
    pub(crate) fn insert(
        self: &Arc<Self>,
        task: RequestTask,
        limit: usize,
        timeout: Duration,
    ) -> Option<u64> {
        let call = Arc::new(SuspendedCall {
            // The request that began the call has been answered: its connection no longer cancels the call.
            task: Mutex::new(Some(task.without_cancellation())),
            taken: Notify::new(),
        });
        let id = {
            let mut calls = self.calls.lock();
            if calls.len() >= limit {
                return None;
            }
            let id = loop {
                let id = fastrand::u64(..);
                if !calls.contains_key(&id) {
                    break id;
                }
            };
            calls.insert(id, Arc::clone(&call));
            id
        };
        let calls = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = call.taken.notified() => {}
                () = tokio::time::sleep(timeout) => {}
                () = async {
                    call.run_until_complete().await;
                    std::future::pending::<()>().await;
                } => {}
            }
            calls.calls.lock().remove(&id);
        });
        Some(id)
    }

    pub(crate) fn take(&self, id: u64) -> Option<RequestTask> {
        let call = self.calls.lock().remove(&id)?;
        let task = call.task.lock().take();
        call.taken.notify_one();
        task
    }
}

impl SuspendedCall {
    /// Polls the call, which may still end by itself, for example at its deadline. The outcome is stored.
    async fn run_until_complete(&self) {
        poll_fn(|context| {
            let mut call = self.task.lock();
            let Some(task) = call.as_mut() else { return Poll::Ready(()) };
            loop {
                match task.poll_running(context) {
                    // No client is connected to receive messages.
                    Poll::Ready(TaskEvent::Message(_) | TaskEvent::InputRequired) => {}
                    Poll::Ready(TaskEvent::Completed(outcome)) => {
                        task.store_outcome(outcome);
                        return Poll::Ready(());
                    }
                    Poll::Ready(TaskEvent::Cancelled) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }
}
