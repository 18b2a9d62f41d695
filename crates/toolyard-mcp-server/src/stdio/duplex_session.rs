//! [`DuplexSession`]: a client with one stream per direction, over stdio or the HTTP+SSE transport of 2024-11-05.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::{sync::mpsc, task::JoinSet};
use toolyard_core::RevisionFamily;
use toolyard_mcp::{Message, RequestId, WireError, WireLimits, error_code};

use crate::{
    dispatch::{
        incoming_request::IncomingRequest,
        methods::Dispatch,
        outcome::{Outcome, error_without_id},
        params::Params,
        revision::{DeclaredRevision, anonymous_peer, modern_peer, revision_family},
        served_endpoint::ServedEndpoint,
    },
    interaction::{
        request_channel::{NotificationPreferences, RequestChannel},
        request_task::{RequestTask, TaskEvent},
    },
    json_fields::each_field,
    server::McpServer,
    session::{peer::Peer, session_id::SessionScope},
};

/// The session of one client. Dropping it ends all its requests.
#[derive(Debug)]
pub(crate) struct DuplexSession {
    server: Arc<McpServer>,
    endpoint: Arc<ServedEndpoint>,
    principal: [u8; 32],
    session_key: u64,
    /// The client, after a legacy `initialize`.
    peer: Mutex<Option<Arc<Peer>>>,
    /// Messages for the client, each on one line.
    out: mpsc::Sender<Bytes>,
    /// Requests, and streams that never end.
    tasks: Mutex<JoinSet<()>>,
    long_lived: Mutex<JoinSet<()>>,
}

impl DuplexSession {
    pub(crate) fn new(
        server: Arc<McpServer>,
        endpoint: Arc<ServedEndpoint>,
        principal: [u8; 32],
        out: mpsc::Sender<Bytes>,
    ) -> Self {
        let (peer, tasks, long_lived) = Default::default();
        let session_key = fastrand::u64(..);
        Self { server, endpoint, principal, session_key, peer, out, tasks, long_lived }
    }

    /// Whether the session belongs to this endpoint.
    pub(crate) fn is_at_endpoint(&self, endpoint: &Arc<ServedEndpoint>) -> bool {
        Arc::ptr_eq(&self.endpoint, endpoint)
    }

    /// Handles one text from the client: a message or a batch.
    pub(crate) async fn receive(&self, text: String) {
        let limits = &self.server.config.limits;
        let wire =
            WireLimits { message_bytes: limits.message_bytes, depth: limits.depth, ..WireLimits::default() };
        let is_batch = text.trim_ascii_start().starts_with('[');
        let version = self.initialized_peer().as_ref().map_or("2025-03-26", |peer| peer.revision);
        match Message::read(text, &wire) {
            Ok(_) if is_batch && version != "2025-03-26" => {
                self.send_error(&WireError::NotJsonRpc("only revision 2025-03-26 has batches")).await;
            }
            Ok(messages) => {
                for message in messages {
                    self.handle_message(message).await;
                }
            }
            Err(error) => self.send_error(&error).await,
        }
    }

    /// Reports a message that could not be parsed.
    pub(crate) async fn send_error(&self, error: &WireError) {
        let code = if matches!(error, WireError::NotJson(_) | WireError::NotUtf8) {
            error_code::PARSE_ERROR
        } else {
            error_code::INVALID_REQUEST
        };
        self.send(error_without_id(code, &error.to_string()).to_line(b"", b"")).await;
    }

    /// Waits until all in-flight requests have ended.
    pub(crate) async fn drain(&self) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        while tasks.join_next().await.is_some() {}
    }

    async fn handle_message(&self, message: Message) {
        match message {
            Message::Request { id, method, params } => {
                self.handle_request(id, method, Params::read(params)).await;
            }
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                let mut id = None;
                // Fields before a syntax error count.
                let _ = each_field(params.as_ref().map_or("{}", |params| params.get()), |key, value| {
                    if key == "requestId" {
                        id = Some(value.get().to_owned());
                    }
                    Ok(())
                });
                if let Some(id) = id {
                    self.server.cancellations.cancel(self.session_key, &id);
                }
            }
            Message::Notification { .. } => {}
            Message::Response { id: Some(id), outcome } => {
                self.server.input_requests.resolve(self.session_key, id, outcome);
            }
            Message::Response { id: None, .. } => {}
        }
    }

    async fn handle_request(&self, id: RequestId, method: String, mut params: Params) {
        let peer = match self.peer_for(&method, &mut params) {
            Ok(peer) => peer,
            Err(outcome) => return self.answer(&id, outcome).await,
        };
        if method == "initialize" && peer.family() == RevisionFamily::Legacy {
            let (outcome, mut peer) = self.server.initialize_peer(&self.endpoint, &params);
            peer.session_key = self.session_key;
            let peer = Arc::new(peer);
            *self.initialized_peer() = Some(Arc::clone(&peer));
            self.answer(&id, outcome).await;
            return self.notify_changes(peer);
        }
        let endpoint = Arc::clone(&self.endpoint);
        let is_long_lived = method == "subscriptions/listen";
        let incoming = IncomingRequest {
            endpoint,
            principal: self.principal,
            peer,
            id: id.clone(),
            method,
            params,
            can_notify: true,
        };
        match self.server.dispatch(incoming) {
            Dispatch::Completed(outcome) => self.answer(&id, outcome).await,
            Dispatch::Pending(task) if self.has_capacity() => {
                let task = task.cancellable(&self.server.cancellations, &id, false);
                let tasks = if is_long_lived { &self.long_lived } else { &self.tasks };
                self.spawn_task(tasks, id, task);
            }
            Dispatch::Pending(_) => {
                let outcome = Outcome::error(error_code::INTERNAL_ERROR, "too many concurrent requests");
                self.answer(&id, outcome).await;
            }
        }
    }

    /// The client of a request; a modern request declares it in its parameters.
    fn peer_for(&self, method: &str, params: &mut Params) -> Result<Arc<Peer>, Outcome> {
        let version = params.meta.as_ref().and_then(|meta| meta.revision.as_deref());
        let declared = DeclaredRevision { method, meta: version, ..DeclaredRevision::default() };
        match revision_family(self.server.config.revisions, declared)? {
            RevisionFamily::Modern => {
                let (peer, meta) = modern_peer(params.meta.take(), Some(self.session_key))?;
                params.meta = Some(meta);
                Ok(Arc::new(peer))
            }
            RevisionFamily::Legacy => {
                Ok(self.initialized_peer().clone().unwrap_or_else(|| anonymous_peer(None, self.session_key)))
            }
        }
    }

    /// Runs a request concurrently with others.
    fn spawn_task(&self, tasks: &Mutex<JoinSet<()>>, id: RequestId, task: RequestTask) {
        let (server, endpoint, principal) =
            (Arc::clone(&self.server), Arc::clone(&self.endpoint), self.principal);
        let out = self.out.clone();
        lock(tasks).spawn(async move {
            let scope = SessionScope { profile: &endpoint.profile, principal: &principal };
            let said = |said| async {
                // After a disconnect the session ends soon.
                let _ = out.send(said).await;
            };
            if let Some(outcome) = server.complete(&scope, task, said).await {
                let _ = out.send(outcome.into_chunks(&id).to_line(b"", b"")).await;
            }
        });
    }

    /// Starts to notify a legacy client of changes.
    fn notify_changes(&self, peer: Arc<Peer>) {
        let channel = RequestChannel::new(
            peer,
            Arc::clone(&self.server.input_requests),
            NotificationPreferences::default(),
        );
        let mut task = self.server.notify_legacy_client(&self.endpoint, channel);
        let out = self.out.clone();
        lock(&self.long_lived).spawn(async move {
            while let TaskEvent::Message(said) = task.next_event().await {
                if out.send(said).await.is_err() {
                    return;
                }
            }
        });
    }

    fn has_capacity(&self) -> bool {
        let all = [&self.tasks, &self.long_lived].into_iter().map(|tasks| {
            let mut tasks = lock(tasks);
            while tasks.try_join_next().is_some() {}
            tasks.len()
        });
        all.sum::<usize>() < self.server.config.limits.in_flight_requests
    }

    async fn answer(&self, id: &RequestId, outcome: Outcome) {
        self.send(outcome.into_chunks(id).to_line(b"", b"")).await;
    }

    async fn send(&self, message: Bytes) {
        // The client may have disconnected.
        let _ = self.out.send(message).await;
    }

    fn initialized_peer(&self) -> MutexGuard<'_, Option<Arc<Peer>>> {
        lock(&self.peer)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
