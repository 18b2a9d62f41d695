//! [`CancellationRegistry`]: cancels in-flight requests by their ids.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use toolyard_mcp::RequestId;

use crate::interaction::request_channel::RequestChannel;

/// The cancellable requests of all clients.
#[derive(Debug, Default)]
pub(crate) struct CancellationRegistry {
    open: Mutex<HashMap<(u64, String), Weak<RequestChannel>>>,
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
        let key = (channel.peer.session_key, id.0.get().to_owned());
        let channel = Arc::downgrade(channel);
        self.lock().insert(key.clone(), Weak::clone(&channel));
        CancellationGuard { registry: Arc::clone(self), key, channel }
    }

    /// Cancels the request with this id of a client.
    pub(crate) fn cancel(&self, session_key: u64, id: &str) {
        let channel = self.lock().get(&(session_key, id.to_owned())).and_then(Weak::upgrade);
        if let Some(channel) = channel {
            channel.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(u64, String), Weak<RequestChannel>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancellationGuard {
    fn drop(&mut self) {
        let mut open = self.registry.lock();
        // A client that reuses an id has replaced the first request.
        if open.get(&self.key).is_some_and(|channel| channel.ptr_eq(&self.channel)) {
            open.remove(&self.key);
        }
    }
}
