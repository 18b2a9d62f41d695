//! [`PendingInputRequests`]: requests to legacy clients that await a response.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::oneshot;
use toolyard_core::{CallInputError, RawJson};
use toolyard_mcp::RpcError;

use crate::sync::lock;

type InputResponse = Result<RawJson, RpcError>;

#[derive(Debug)]
pub(crate) struct PendingInputRequests {
    next_id: AtomicU64,
    /// By request id: the session number of the client, and the channel for its response.
    pending: Mutex<HashMap<u64, (u64, oneshot::Sender<InputResponse>)>>,
}

/// A request that awaits its response; dropping it withdraws the request.
#[derive(Debug)]
pub(crate) struct PendingInputRequest {
    pub(crate) id: u64,
    requests: Arc<PendingInputRequests>,
    response: oneshot::Receiver<InputResponse>,
}

impl Default for PendingInputRequests {
    fn default() -> Self {
        // Ids of other processes must not match; JSON numbers are exact up to 53 bits.
        Self { next_id: AtomicU64::new(fastrand::u64(1..1 << 50)), pending: Mutex::default() }
    }
}

impl PendingInputRequests {
    /// Reserves an id for a request to a client.
    pub(crate) fn register(self: &Arc<Self>, session_number: u64) -> PendingInputRequest {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = oneshot::channel();
        lock(&self.pending).insert(id, (session_number, sender));
        PendingInputRequest { id, requests: Arc::clone(self), response }
    }

    /// Delivers a response. Returns false if no request with this id went to this client.
    pub(crate) fn resolve(&self, session_number: u64, id: u64, response: InputResponse) -> bool {
        let mut pending = lock(&self.pending);
        if pending.get(&id).is_none_or(|(session, _)| *session != session_number) {
            return false;
        }
        let Some((_, sender)) = pending.remove(&id) else { return false };
        drop(pending);
        sender.send(response).is_ok()
    }
}

impl PendingInputRequest {
    pub(crate) async fn response(mut self) -> Result<RawJson, CallInputError> {
        match (&mut self.response).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(CallInputError::Rejected { code: error.code, message: error.message }),
            Err(_) => Err(CallInputError::unsupported()),
        }
    }
}

impl Drop for PendingInputRequest {
    fn drop(&mut self) {
        lock(&self.requests.pending).remove(&self.id);
    }
}
