//! [`PendingInputRequests`]: requests to legacy clients that await a response.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::oneshot;
use toolyard_core::{CallInputError, RawJson};
use toolyard_mcp::RpcError;

type InputResponse = Result<RawJson, RpcError>;

/// Requests of all clients that await a response.
#[derive(Debug)]
pub(crate) struct PendingInputRequests {
    next: AtomicU64,
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
        Self { next: AtomicU64::new(fastrand::u64(1..1 << 50)), pending: Mutex::default() }
    }
}

impl PendingInputRequests {
    /// Reserves an id for a request to a client.
    pub(crate) fn register(self: &Arc<Self>, session_key: u64) -> PendingInputRequest {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = oneshot::channel();
        self.lock().insert(id, (session_key, sender));
        PendingInputRequest { id, requests: Arc::clone(self), response }
    }

    /// Delivers a response. Returns false if no request with this id went to this client.
    pub(crate) fn resolve(&self, session_key: u64, id: u64, response: InputResponse) -> bool {
        let mut pending = self.lock();
        if pending.get(&id).is_none_or(|(owner, _)| *owner != session_key) {
            return false;
        }
        let Some((_, sender)) = pending.remove(&id) else { return false };
        drop(pending);
        sender.send(response).is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (u64, oneshot::Sender<InputResponse>)>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.requests.lock().remove(&self.id);
    }
}
