//! [`PendingInputRequests`]: requests to legacy clients that await a response.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use toolyard_core::{CallInputError, RawJson};
use toolyard_mcp::{RequestId, ResponseId, RpcError};

pub(crate) type InputResponse = Result<RawJson, RpcError>;

#[derive(Debug)]
pub(crate) struct PendingInputRequests {
    /// The number of this process in its cluster. Part of the ids, so that a process that receives the response can forward it.
    own_number: Option<u64>,
    next_number: AtomicU64,
    /// By request number: the session number of the client, and the channel for its response.
    pending: Mutex<HashMap<u64, (u64, oneshot::Sender<InputResponse>)>>,
}

/// A request that awaits its response; dropping it withdraws the request.
#[derive(Debug)]
pub(crate) struct PendingInputRequest {
    pub(crate) id: RequestId,
    number: u64,
    requests: Arc<PendingInputRequests>,
    response: oneshot::Receiver<InputResponse>,
}

/// The process that awaits the response to an input request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingProcess {
    This { number: u64 },
    Other { process: u64, number: u64 },
}

impl PendingInputRequests {
    /// The requests of a process with this number in its cluster.
    pub(crate) fn new(own_number: Option<u64>) -> Self {
        // Ids of other processes must not match, also not those of an earlier process with the same number; JSON numbers are
        // exact up to 53 bits.
        let next_number = AtomicU64::new(fastrand::u64(1..1 << 50));
        Self { own_number, next_number, pending: Mutex::default() }
    }

    /// The process that the id of a response names; none if no process sends requests with such an id.
    pub(crate) fn waiting_process(&self, id: &ResponseId) -> Option<WaitingProcess> {
        match (id, self.own_number) {
            (ResponseId::Number(number), None) => Some(WaitingProcess::This { number: *number }),
            (ResponseId::Text(text), Some(own_number)) => {
                let (process, number) = read_cluster_id(text)?;
                Some(match process == own_number {
                    true => WaitingProcess::This { number },
                    false => WaitingProcess::Other { process, number },
                })
            }
            _ => None,
        }
    }

    /// Reserves an id for a request to a client.
    pub(crate) fn register(self: &Arc<Self>, session_number: u64) -> PendingInputRequest {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let id = match self.own_number {
            Some(process) => cluster_id(process, number).into(),
            None => serde_json::Value::from(number),
        };
        let (sender, response) = oneshot::channel();
        self.pending.lock().insert(number, (session_number, sender));
        PendingInputRequest { id: RequestId(id.into()), number, requests: Arc::clone(self), response }
    }

    /// Delivers a response. Returns false if no request with this number went to this client.
    pub(crate) fn resolve(&self, session_number: u64, number: u64, response: InputResponse) -> bool {
        let mut pending = self.pending.lock();
        if pending.get(&number).is_none_or(|(session, _)| *session != session_number) {
            return false;
        }
        let Some((_, sender)) = pending.remove(&number) else { return false };
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
        self.requests.pending.lock().remove(&self.number);
    }
}

/// The id of a request in a cluster: a number of 64 bits and another one of 50 do not fit into a JSON number.
fn cluster_id(process: u64, number: u64) -> String {
    format!("{process:x}-{number:x}")
}

/// The process and the request number of an id; none if it was not made by [`cluster_id`].
fn read_cluster_id(id: &str) -> Option<(u64, u64)> {
    let (process, number) = id.split_once('-')?;
    let (process, number) = (u64::from_str_radix(process, 16).ok()?, u64::from_str_radix(number, 16).ok()?);
    (cluster_id(process, number) == id).then_some((process, number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn response_id(id: &RequestId) -> ResponseId {
        match id.0.to_value() {
            serde_json::Value::String(text) => ResponseId::Text(text),
            other => ResponseId::Number(other.as_u64().unwrap()),
        }
    }

    #[test]
    fn an_id_names_the_waiting_process() {
        let without_peers = Arc::new(PendingInputRequests::new(None));
        let (one, other) = (
            Arc::new(PendingInputRequests::new(Some(1))),
            Arc::new(PendingInputRequests::new(Some(u64::MAX))),
        );
        for requests in [&without_peers, &one, &other] {
            let pending = requests.register(7);
            let id = response_id(&pending.id);
            let waiting = requests.waiting_process(&id);
            assert_eq!(waiting, Some(WaitingProcess::This { number: pending.number }));
            let is_numeric = matches!(id, ResponseId::Number(_));
            assert_eq!(is_numeric, requests.own_number.is_none());
        }
        let pending = other.register(7);
        let number = pending.number;
        let waiting = one.waiting_process(&response_id(&pending.id));
        assert_eq!(waiting, Some(WaitingProcess::Other { process: u64::MAX, number }));
        assert_eq!(without_peers.waiting_process(&response_id(&pending.id)), None);
        assert_eq!(one.waiting_process(&ResponseId::Number(number)), None);
    }

    proptest! {
        #[test]
        fn only_ids_of_a_cluster_are_read(process in any::<u64>(), number in any::<u64>(), text in "[-+0-9a-fA-F ]{0,12}") {
            prop_assert_eq!(read_cluster_id(&cluster_id(process, number)), Some((process, number)));
            if let Some((process, number)) = read_cluster_id(&text) {
                prop_assert_eq!(cluster_id(process, number), text);
            }
        }
    }
}
