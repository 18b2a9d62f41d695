//! The HTTP+SSE transport of 2024-11-05: an event stream, and a URL for messages.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::mpsc;

use crate::{
    dispatch::served_endpoint::ServedEndpoint,
    http::{
        body::{KeepAlive, LegacyEventStream},
        config::HttpConfig,
    },
    server::McpServer,
    session::sealing::random,
    stdio::duplex_session::DuplexSession,
};

/// Messages that may wait on one stream.
const OUTPUT_QUEUE_MESSAGES: usize = 256;

/// The open sessions.
#[derive(Debug, Default)]
pub(crate) struct LegacySessions {
    open: Mutex<HashMap<String, Weak<DuplexSession>>>,
}

/// Removes a session when dropped.
#[derive(Debug)]
pub(crate) struct LegacySessionGuard {
    sessions: Arc<LegacySessions>,
    id: String,
}

impl LegacySessions {
    /// Opens a session. Its first event names the URL for messages.
    pub(crate) fn open_stream(
        self: &Arc<Self>,
        server: &Arc<McpServer>,
        endpoint: &Arc<ServedEndpoint>,
        principal: [u8; 32],
        config: &HttpConfig,
    ) -> Option<LegacyEventStream> {
        let (out, messages) = mpsc::channel(OUTPUT_QUEUE_MESSAGES);
        let session = Arc::new(DuplexSession::new(Arc::clone(server), Arc::clone(endpoint), principal, out));
        // The id authorizes messages of this session: it must not be guessable.
        let mut id = [0; 16];
        random(&mut id)?;
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        self.lock().insert(id.clone(), Arc::downgrade(&session));
        let profile =
            if endpoint.profile.is_empty() { String::new() } else { format!("/{}", endpoint.profile) };
        let first_event = format!("event: endpoint\ndata: /messages{profile}?sessionId={id}\n\n");
        let mut stopped = server.shutdown_signal();
        let open = LegacySessionGuard { sessions: Arc::clone(self), id };
        Some(LegacyEventStream {
            first: Some(first_event.into()),
            messages,
            keep_alive: KeepAlive::new(config.keep_alive_interval),
            stopped: Box::pin(async move { stopped.wait().await }),
            _session: (session, open),
        })
    }

    /// The session with this id at an endpoint.
    pub(crate) fn find(&self, id: &str, endpoint: &Arc<ServedEndpoint>) -> Option<Arc<DuplexSession>> {
        self.lock().get(id).and_then(Weak::upgrade).filter(|session| session.is_at_endpoint(endpoint))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<DuplexSession>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LegacySessionGuard {
    fn drop(&mut self) {
        self.sessions.lock().remove(&self.id);
    }
}
