//! [`CancellationRegistry`]: cancels in-flight requests by their ids.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use toolyard_core::RawJson;
use toolyard_mcp::{RequestId, raw_field};

use crate::interaction::request_channel::RequestChannel;

#[derive(Debug, Default)]
pub(crate) struct CancellationRegistry {
    /// By session number and request id.
    in_flight: Mutex<HashMap<(u64, String), Weak<RequestChannel>>>,
}

/// Registers a request until dropped.
#[derive(Debug)]
pub(crate) struct CancellationGuard {
    registry: Arc<CancellationRegistry>,
    key: (u64, String),
    channel: Weak<RequestChannel>,
}

impl CancellationRegistry {
    pub(crate) fn register(
        self: &Arc<Self>,
        channel: &Arc<RequestChannel>,
        id: &RequestId,
    ) -> CancellationGuard {
        let key = (channel.peer.session_number, id.0.get().to_owned());
        let channel = Arc::downgrade(channel);
        self.in_flight.lock().insert(key.clone(), Weak::clone(&channel));
        CancellationGuard { registry: Arc::clone(self), key, channel }
    }

    /// The number of registered requests.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.lock().len()
    }

    /// Cancels the request of a client that the parameters of `notifications/cancelled` name.
    pub(crate) fn cancel(&self, session_number: u64, params: &RawJson) {
        if let Some(id) = raw_field(params, "requestId") {
            self.cancel_id(session_number, &id);
        }
    }

    /// Cancels a request of a client. Returns false if this process has no such request.
    pub(crate) fn cancel_id(&self, session_number: u64, id: &RawJson) -> bool {
        let channel =
            self.in_flight.lock().get(&(session_number, id.get().to_owned())).and_then(Weak::upgrade);
        channel.inspect(|channel| channel.cancel()).is_some()
    }
}

impl Drop for CancellationGuard {
    fn drop(&mut self) {
        let mut in_flight = self.registry.in_flight.lock();
        // A client that reuses an id has replaced the first request.
        if in_flight.get(&self.key).is_some_and(|channel| channel.ptr_eq(&self.channel)) {
            in_flight.remove(&self.key);
        }
    }
}
