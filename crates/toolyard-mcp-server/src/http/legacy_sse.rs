//! The HTTP+SSE transport of 2024-11-05: an event stream, and a URL for messages.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use toolyard_core::{CallerIdentity, telemetry::Transport};

use crate::{
    dispatch::served_endpoint::ServedEndpoint,
    http::{
        config::HttpConfig,
        event_stream::{EventStream, KeepAlive, sse_event},
    },
    server::McpServer,
    session::sealing::fill_random,
    stdio::duplex_session::DuplexSession,
};

/// Messages that may wait on one stream.
const OUTPUT_QUEUE_MESSAGES: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct LegacySseSessions {
    open: Mutex<HashMap<String, Weak<DuplexSession>>>,
}

/// Removes a session when dropped.
#[derive(Debug)]
struct LegacySseSessionGuard {
    sessions: Arc<LegacySseSessions>,
    id: String,
}

impl LegacySseSessions {
    /// Opens a session. Its first event names the URL for messages.
    pub(crate) fn open_stream(
        self: &Arc<Self>,
        server: &Arc<McpServer>,
        endpoint: &Arc<ServedEndpoint>,
        identity: &Arc<CallerIdentity>,
        config: &HttpConfig,
    ) -> Option<EventStream> {
        let (out, mut messages) = mpsc::channel(OUTPUT_QUEUE_MESSAGES);
        let session = Arc::new(DuplexSession::new(
            Arc::clone(server),
            Arc::clone(endpoint),
            Arc::clone(identity),
            Transport::Http,
            out,
        ));
        // The id authorizes messages of this session: it must not be guessable.
        let mut id = [0; 16];
        fill_random(&mut id)?;
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        self.open.lock().insert(id.clone(), Arc::downgrade(&session));
        let profile =
            if endpoint.profile.is_empty() { String::new() } else { format!("/{}", endpoint.profile) };
        let first_event = format!("event: endpoint\ndata: /messages{profile}?sessionId={id}\n\n");
        let mut shutdown = server.shutdown_signal();
        let retired = endpoint.retired();
        // The session ends together with its stream.
        let open = (session, LegacySseSessionGuard { sessions: Arc::clone(self), id });
        let events = stream::poll_fn(move |context| {
            let _open = &open;
            messages.poll_recv(context).map(|message| Some(sse_event(&message?)))
        });
        Some(EventStream {
            events: stream::once(std::future::ready(first_event.into())).chain(events).boxed(),
            keep_alive: KeepAlive::new(config.keep_alive_interval),
            stop: Box::pin(async move {
                tokio::select! {
                    () = shutdown.wait() => {}
                    () = retired => {}
                }
            }),
        })
    }

    /// The session of this id, if the caller opened it at this endpoint.
    pub(crate) fn find(
        &self,
        id: &str,
        endpoint: &Arc<ServedEndpoint>,
        identity: &CallerIdentity,
    ) -> Option<Arc<DuplexSession>> {
        let session = self.open.lock().get(id).and_then(Weak::upgrade)?;
        (session.is_at_endpoint(endpoint) && session.is_of(identity)).then_some(session)
    }
}

impl Drop for LegacySseSessionGuard {
    fn drop(&mut self) {
        self.sessions.open.lock().remove(&self.id);
    }
}
