//! Questions of the legacy era that were sent to clients and whose answers come as messages of their own.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::oneshot;
use toolyard_core::{RawJson, Unanswered};

use crate::wire::RpcError;

type Answer = Result<RawJson, RpcError>;

/// Everything that was asked and not answered yet, over all clients.
#[derive(Debug)]
pub(super) struct Questions {
    next: AtomicU64,
    open: Mutex<HashMap<u64, (u64, oneshot::Sender<Answer>)>>,
}

/// One question that waits. Dropping it takes the question back.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    pub(super) id: u64,
    questions: Arc<Questions>,
    answer: oneshot::Receiver<Answer>,
}

impl Default for Questions {
    fn default() -> Self {
        // Numbers of another process must not be answered here; clients keep whole numbers up to 53 bits.
        Self { next: AtomicU64::new(fastrand::u64(1..1 << 50)), open: Mutex::default() }
    }
}

impl Questions {
    /// A number for a question to a client.
    pub(super) fn open(self: &Arc<Self>, conversation: u64) -> OpenQuestion {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.lock().insert(id, (conversation, sender));
        OpenQuestion { id, questions: Arc::clone(self), answer }
    }

    /// Brings a client's answer to whoever asked. False if nobody asked this client.
    pub(super) fn answer(&self, conversation: u64, id: u64, answer: Answer) -> bool {
        let mut open = self.lock();
        if open.get(&id).is_none_or(|(asked, _)| *asked != conversation) {
            return false;
        }
        let Some((_, sender)) = open.remove(&id) else { return false };
        drop(open);
        sender.send(answer).is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (u64, oneshot::Sender<Answer>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenQuestion {
    pub(super) async fn answer(mut self) -> Result<RawJson, Unanswered> {
        match (&mut self.answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Unanswered { code: error.code, message: error.message }),
            Err(_) => Err(Unanswered::nobody()),
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.questions.lock().remove(&self.id);
    }
}
