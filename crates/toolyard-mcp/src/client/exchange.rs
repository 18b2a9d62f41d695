//! Requests of one connection and their answers: who waits for what, and who hears the rest.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::{mpsc, oneshot};
use toolyard_core::RawJson;

use super::{Sent, TransportError, beats::Beats};
use crate::wire::{Message, RequestId, RpcError};

/// How many things the server may tell before someone listens; what is more is dropped, and that is counted.
const HEARD: usize = 256;

/// What a server tells or asks without having been asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Heard {
    /// The server asks something.
    Request {
        /// To be given back.
        id: RequestId,
        /// What is asked.
        method: String,
        /// The parameters as they came.
        params: Option<RawJson>,
        /// The number of the request on whose stream it came, where each has a stream of its own.
        related: Option<u64>,
    },
    /// The server tells something.
    Notification {
        /// What happened.
        method: String,
        /// The parameters as they came.
        params: Option<RawJson>,
    },
    /// The connection is gone.
    Closed(TransportError),
}

/// What the server said to one request.
pub(crate) type Outcome = Result<RawJson, RpcError>;
/// The answer to one request, or why there is none.
pub(crate) type Answer = Result<Outcome, TransportError>;

/// Who waits for what on one connection.
#[derive(Debug)]
pub struct Exchange {
    next: AtomicU64,
    limit: usize,
    state: Mutex<State>,
    heard: mpsc::Sender<Heard>,
    dropped: AtomicU64,
    stray: AtomicU64,
    /// Whose the requests under way are, and who hears of them.
    pub(super) beats: Beats,
}

#[derive(Debug, Default)]
struct State {
    pending: HashMap<u64, oneshot::Sender<Answer>>,
    /// Why the connection is gone, once it is.
    closed: Option<TransportError>,
}

/// A place in the queue for one answer.
#[derive(Debug)]
pub struct Waiting {
    /// The number to send.
    pub id: u64,
    answer: oneshot::Receiver<Answer>,
}

impl Waiting {
    /// The answer, once there is one.
    pub async fn answer(&mut self) -> Answer {
        (&mut self.answer).await.unwrap_or(Err(TransportError::Closed))
    }

    /// The answer to a request that is being sent, whichever way it comes. The end of the connection ends the sending too.
    pub(crate) async fn answer_to(
        &mut self,
        sending: impl Future<Output = Result<Sent, TransportError>>,
    ) -> Answer {
        let sent = tokio::select! {
            biased;
            answer = self.answer() => return answer,
            sent = sending => sent?,
        };
        match sent {
            Sent::Answered(outcome) => Ok(outcome),
            Sent::Taken => self.answer().await,
        }
    }
}

impl Exchange {
    /// An exchange, and the other end of everything the server tells unasked.
    pub fn new(in_flight: usize) -> (Self, mpsc::Receiver<Heard>) {
        let (heard, listener) = mpsc::channel(HEARD);
        let exchange = Self {
            next: AtomicU64::new(1),
            limit: in_flight,
            state: Mutex::default(),
            heard,
            dropped: AtomicU64::new(0),
            stray: AtomicU64::new(0),
            beats: Beats::default(),
        };
        (exchange, listener)
    }

    /// Takes a number for a request and a place to wait for its answer.
    pub fn wait(&self) -> Result<Waiting, TransportError> {
        let mut state = self.state();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        if state.pending.len() >= self.limit {
            return Err(TransportError::Busy(self.limit));
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        state.pending.insert(id, sender);
        Ok(Waiting { id, answer })
    }

    /// Nobody waits for this answer any more. Whether someone did.
    pub fn forget(&self, id: u64) -> bool {
        self.state().pending.remove(&id).is_some()
    }

    /// Whether someone waits for this answer.
    pub fn awaits(&self, id: u64) -> bool {
        self.state().pending.contains_key(&id)
    }

    /// Hands over a message from the server. Answers nobody waits for are counted and dropped: they were cancelled, or
    /// made up.
    pub fn deliver(&self, message: Message) {
        self.deliver_related(message, None);
    }

    /// The same for a message that came on the stream of one request.
    pub fn deliver_related(&self, message: Message, related: Option<u64>) {
        let heard = match message {
            Message::Response { id, outcome } => return self.answer(id, Ok(outcome)),
            Message::Request { id, method, params } => Heard::Request { id, method, params, related },
            // At once, so that nobody hears of it after the answer.
            Message::Notification { method, params: Some(params) }
                if self.beats.told(&method, &params, related) =>
            {
                return;
            }
            Message::Notification { method, params } => Heard::Notification { method, params },
        };
        if self.heard.try_send(heard).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One request failed on its way; the others are not concerned.
    pub fn fail(&self, id: u64, error: TransportError) {
        self.answer(Some(id), Err(error));
    }

    /// The connection is gone: everyone who waits hears it, and so does everyone who comes later.
    pub fn close(&self, error: &TransportError) {
        let waiting = {
            let mut state = self.state();
            if state.closed.is_some() {
                return;
            }
            state.closed = Some(error.clone());
            std::mem::take(&mut state.pending)
        };
        for sender in waiting.into_values() {
            // Whoever does not wait any more need not hear it.
            let _ = sender.send(Err(error.clone()));
        }
        if self.heard.try_send(Heard::Closed(error.clone())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Why the connection is gone, if it is.
    pub fn closed(&self) -> Option<TransportError> {
        self.state().closed.clone()
    }

    /// How many answers nobody waited for, and how many things were told faster than anyone listened.
    pub fn ignored(&self) -> (u64, u64) {
        (self.stray.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }

    /// How many answers are waited for.
    pub fn in_flight(&self) -> usize {
        self.state().pending.len()
    }

    fn answer(&self, id: Option<u64>, answer: Answer) {
        match id.and_then(|id| self.state().pending.remove(&id)) {
            // Whoever gave up at this very moment need not hear it.
            Some(sender) => drop(sender.send(answer)),
            None => {
                self.stray.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
