//! Matches responses to the requests of one connection and queues everything else that the server sends.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use toolyard_core::RawJson;
use toolyard_mcp::{Message, RequestId, RpcError};

use crate::transport::{error::TransportError, message::SendOutcome, requests::in_flight::InFlightRequests};

/// Server messages that may be queued; further ones are dropped.
const MAX_QUEUED_MESSAGES: usize = 256;

/// What a connection receives besides responses.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerMessage {
    /// A request of the server.
    Request {
        /// The id to respond with.
        id: RequestId,
        /// The method.
        method: String,
        /// The parameters as they were sent.
        params: Option<RawJson>,
        /// The request on whose stream it came, where each request has a stream.
        related_request: Option<u64>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The parameters as they were sent.
        params: Option<RawJson>,
    },
    /// The connection is closed.
    Closed(TransportError),
}

/// A result or an error of the server.
pub(crate) type RpcOutcome = Result<RawJson, RpcError>;
/// The response to a request, or why there is none.
pub(crate) type ResponseOutcome = Result<RpcOutcome, TransportError>;

/// The requests of one connection that await a response.
#[derive(Debug)]
pub struct PendingRequests {
    next_id: AtomicU64,
    limit: usize,
    state: Mutex<PendingState>,
    messages: mpsc::Sender<ServerMessage>,
    unmatched: AtomicU64,
    pub(crate) in_flight: InFlightRequests,
}

#[derive(Debug, Default)]
struct PendingState {
    senders: HashMap<u64, oneshot::Sender<ResponseOutcome>>,
    /// Why the connection is closed, if it is.
    closed: Option<TransportError>,
}

/// A request that awaits its response.
#[derive(Debug)]
pub struct PendingRequest {
    /// The id to send.
    pub id: u64,
    response: oneshot::Receiver<ResponseOutcome>,
}

impl PendingRequest {
    /// Waits for the response.
    pub async fn response(&mut self) -> Result<Result<RawJson, RpcError>, TransportError> {
        (&mut self.response).await.unwrap_or(Err(TransportError::Closed))
    }

    /// Waits for the response to a request that is being sent, whether sending returns it or it is delivered. The end of
    /// the connection ends the sending, too.
    pub(crate) async fn response_to(
        &mut self,
        sending: impl Future<Output = Result<SendOutcome, TransportError>>,
    ) -> ResponseOutcome {
        let sent = tokio::select! {
            biased;
            response = self.response() => return response,
            sent = sending => sent?,
        };
        match sent {
            SendOutcome::Response(outcome) => Ok(outcome),
            SendOutcome::Accepted => self.response().await,
        }
    }
}

impl PendingRequests {
    /// Returns an empty set for at most `limit` requests at a time, and the receiver of all other messages.
    pub fn new(limit: usize) -> (Self, mpsc::Receiver<ServerMessage>) {
        let (messages, receiver) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let requests = Self {
            next_id: AtomicU64::new(1),
            limit,
            state: Mutex::default(),
            messages,
            unmatched: AtomicU64::new(0),
            in_flight: InFlightRequests::default(),
        };
        (requests, receiver)
    }

    /// Adds a request under a new id.
    pub fn register(&self) -> Result<PendingRequest, TransportError> {
        let mut state = self.state.lock();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        if state.senders.len() >= self.limit {
            return Err(TransportError::TooManyRequests(self.limit));
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = oneshot::channel();
        state.senders.insert(id, sender);
        Ok(PendingRequest { id, response })
    }

    /// Removes a request. Returns whether it was pending.
    pub fn remove(&self, id: u64) -> bool {
        self.state.lock().senders.remove(&id).is_some()
    }

    /// Whether the request awaits its response.
    pub fn contains(&self, id: u64) -> bool {
        self.state.lock().senders.contains_key(&id)
    }

    /// Delivers a message from the server. Responses without a pending request are counted and dropped: the request was
    /// cancelled, or the server made the id up.
    pub fn deliver(&self, message: Message) {
        self.deliver_related(message, None);
    }

    /// Delivers a message that came on the stream of one request.
    pub fn deliver_related(&self, message: Message, related_request: Option<u64>) {
        let message = match message {
            // Requests have integer ids: `"1"` matches none.
            Message::Response { id, outcome } => {
                return self.resolve(id.and_then(|id| id.number()), Ok(outcome));
            }
            Message::Request { id, method, params } => {
                ServerMessage::Request { id, method, params, related_request }
            }
            // At once, so that no progress is reported after the response.
            Message::Notification { method, params: Some(params) }
                if self.in_flight.handle_notification(&method, &params, related_request) =>
            {
                return;
            }
            Message::Notification { method, params } => ServerMessage::Notification { method, params },
        };
        // A full queue drops the message.
        let _ = self.messages.try_send(message);
    }

    /// Closes the connection: every pending and every later request fails with this error.
    pub fn close(&self, error: &TransportError) {
        let pending = {
            let mut state = self.state.lock();
            if state.closed.is_some() {
                return;
            }
            state.closed = Some(error.clone());
            std::mem::take(&mut state.senders)
        };
        for sender in pending.into_values() {
            // The receiver may be gone.
            let _ = sender.send(Err(error.clone()));
        }
        let _ = self.messages.try_send(ServerMessage::Closed(error.clone()));
    }

    /// Why the connection is closed, if it is.
    pub fn closed(&self) -> Option<TransportError> {
        self.state.lock().closed.clone()
    }

    fn resolve(&self, id: Option<u64>, response: ResponseOutcome) {
        match id.and_then(|id| self.state.lock().senders.remove(&id)) {
            // The receiver may be gone.
            Some(sender) => drop(sender.send(response)),
            None => {
                self.unmatched.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
impl PendingRequests {
    pub(crate) fn len(&self) -> usize {
        self.state.lock().senders.len()
    }

    /// How many responses had no pending request.
    pub(crate) fn unmatched_responses(&self) -> u64 {
        self.unmatched.load(Ordering::Relaxed)
    }
}
