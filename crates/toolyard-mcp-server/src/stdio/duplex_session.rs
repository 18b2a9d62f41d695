//! [`DuplexSession`]: a client with one stream per direction, over stdio or the HTTP+SSE transport of 2024-11-05.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinSet};
use toolyard_core::{CallerIdentity, RevisionFamily, telemetry::Transport};
use toolyard_mcp::{Message, RequestId, WireError};

use crate::{
    dispatch::{
        incoming_request::IncomingRequest,
        methods::Dispatch,
        operation::{self, RequestFacts},
        outcome::{Outcome, invalid_message},
        params::Params,
        revision::{BATCH_REVISION, DeclaredRevision, anonymous_peer, modern_peer, revision_family},
        served_endpoint::ServedEndpoint,
    },
    interaction::{
        input_requests::WaitingProcess,
        request_channel::{NotificationPreferences, RequestChannel},
        request_task::{RequestTask, TaskEvent},
    },
    server::McpServer,
    session::{peer::Peer, session_id::SessionScope},
};

/// The session of one client. Dropping it ends all its requests.
#[derive(Debug)]
pub(crate) struct DuplexSession {
    server: Arc<McpServer>,
    endpoint: Arc<ServedEndpoint>,
    /// Who opened it.
    identity: Arc<CallerIdentity>,
    session_number: u64,
    transport: Transport,
    /// The client, after a legacy `initialize`.
    peer: Mutex<Option<Arc<Peer>>>,
    /// Messages for the client, each on one line.
    out: mpsc::Sender<Bytes>,
    /// Requests that end with a response.
    tasks: Mutex<JoinSet<()>>,
    /// Change streams, which last as long as the session.
    long_lived: Mutex<JoinSet<()>>,
}

impl DuplexSession {
    pub(crate) fn new(
        server: Arc<McpServer>,
        endpoint: Arc<ServedEndpoint>,
        identity: Arc<CallerIdentity>,
        transport: Transport,
        out: mpsc::Sender<Bytes>,
    ) -> Self {
        let (peer, tasks, long_lived) = Default::default();
        let session_number = fastrand::u64(..);
        Self { server, endpoint, identity, session_number, transport, peer, out, tasks, long_lived }
    }

    pub(crate) fn is_at_endpoint(&self, endpoint: &Arc<ServedEndpoint>) -> bool {
        Arc::ptr_eq(&self.endpoint, endpoint)
    }

    pub(crate) fn is_of(&self, identity: &CallerIdentity) -> bool {
        self.identity.owner_hash() == identity.owner_hash()
    }

    /// Handles one text from the client: a message or a batch. `identity` is of the caller that opened the session, as of now: its groups
    /// and scopes may have changed since.
    pub(crate) async fn receive(&self, text: String, identity: &Arc<CallerIdentity>) {
        let is_batch = text.trim_ascii_start().starts_with('[');
        // Before `initialize`, the client may be of the revision that has batches.
        let revision = self.peer.lock().as_ref().map_or(BATCH_REVISION, |peer| peer.revision);
        match Message::read(text, &self.server.config.limits.wire_limits()) {
            Ok(_) if is_batch && revision != BATCH_REVISION => {
                self.send_error(&WireError::NotJsonRpc("only revision 2025-03-26 has batches")).await;
            }
            Ok(messages) => {
                for message in messages {
                    self.handle_message(message, identity).await;
                }
            }
            Err(error) => self.send_error(&error).await,
        }
    }

    /// Reports a message that could not be parsed.
    pub(crate) async fn send_error(&self, error: &WireError) {
        self.send(invalid_message(error).to_line()).await;
    }

    /// Waits until all requests have ended.
    pub(crate) async fn drain(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }

    async fn handle_message(&self, message: Message, identity: &Arc<CallerIdentity>) {
        match message {
            Message::Request { id, method, params } => {
                self.handle_request(id, method, Params::read(params), identity).await;
            }
            Message::Notification { method, params: Some(params) } if method == "notifications/cancelled" => {
                self.server.cancellations.cancel(self.session_number, &params);
            }
            Message::Response { id: Some(id), outcome } => {
                // The session has one connection, so this process asked.
                if let Some(WaitingProcess::This { number }) = self.server.input_requests.waiting_process(&id)
                {
                    self.server.input_requests.resolve(self.session_number, number, outcome);
                }
            }
            Message::Notification { .. } | Message::Response { id: None, .. } => {}
        }
    }

    async fn handle_request(
        &self,
        id: RequestId,
        method: String,
        mut params: Params,
        identity: &Arc<CallerIdentity>,
    ) {
        let peer = match self.peer_for(&method, &mut params) {
            Ok(peer) => peer,
            Err(outcome) => {
                let (method, params) = (method.as_str(), &params);
                let (peer, transport) = (None, self.transport);
                let facts = RequestFacts { id: &id, method, params, peer, identity, transport };
                operation::end(self.server.start_operation(facts), &outcome, false);
                return self.respond(&id, outcome).await;
            }
        };
        if method == "initialize" && peer.family() == RevisionFamily::Legacy {
            let facts = RequestFacts {
                id: &id,
                method: &method,
                params: &params,
                peer: Some(&peer),
                identity,
                transport: self.transport,
            };
            let (outcome, mut peer) = self.server.initialize_peer(&self.endpoint, facts);
            peer.session_number = self.session_number;
            let peer = Arc::new(peer);
            *self.peer.lock() = Some(Arc::clone(&peer));
            self.respond(&id, outcome).await;
            return self.notify_changes(peer);
        }
        let endpoint = Arc::clone(&self.endpoint);
        let is_long_lived = method == "subscriptions/listen";
        let incoming = IncomingRequest {
            endpoint,
            identity: Arc::clone(identity),
            peer,
            id: id.clone(),
            method,
            params,
            can_notify: true,
            transport: self.transport,
            span: None,
        };
        match self.server.dispatch(incoming) {
            Dispatch::Completed(outcome) => self.respond(&id, outcome).await,
            Dispatch::Pending(task) if self.has_capacity() => {
                let task = task.cancellable(&self.server.cancellations, &id);
                let tasks = if is_long_lived { &self.long_lived } else { &self.tasks };
                self.spawn_task(tasks, id, task);
            }
            Dispatch::Pending(mut task) => {
                let outcome = Outcome::internal_error("too many concurrent requests");
                task.end_operation(&outcome);
                self.respond(&id, outcome).await;
            }
        }
    }

    /// The client of a request; a modern request declares it in its parameters.
    fn peer_for(&self, method: &str, params: &mut Params) -> Result<Arc<Peer>, Outcome> {
        let version = params.meta.as_ref().and_then(|meta| meta.revision.as_deref());
        let declared = DeclaredRevision { method, meta: version, ..DeclaredRevision::default() };
        match revision_family(self.server.config.revisions, declared)? {
            RevisionFamily::Modern => modern_peer(params, self.session_number),
            RevisionFamily::Legacy => {
                Ok(self.peer.lock().clone().unwrap_or_else(|| anonymous_peer(None, self.session_number)))
            }
        }
    }

    /// Runs a request concurrently with others.
    fn spawn_task(&self, tasks: &Mutex<JoinSet<()>>, id: RequestId, task: RequestTask) {
        let (server, endpoint, owner_hash) =
            (Arc::clone(&self.server), Arc::clone(&self.endpoint), self.identity.owner_hash());
        let out = self.out.clone();
        tasks.lock().spawn(async move {
            let scope = SessionScope { profile: &endpoint.profile, owner_hash: &owner_hash };
            let send = |message| async {
                // After a disconnect the session ends soon.
                let _ = out.send(message).await;
            };
            if let Some(outcome) = server.run_until_response(&scope, task, send).await {
                let _ = out.send(outcome.into_chunks(&id).to_line()).await;
            }
        });
    }

    fn notify_changes(&self, peer: Arc<Peer>) {
        let channel = RequestChannel::new(
            peer,
            Arc::clone(&self.server.input_requests),
            NotificationPreferences::default(),
        );
        let mut task = self.server.notify_legacy_client(&self.endpoint, channel);
        let out = self.out.clone();
        self.long_lived.lock().spawn(async move {
            while let TaskEvent::Message(message) = task.next_event().await {
                if out.send(message).await.is_err() {
                    return;
                }
            }
        });
    }

    fn has_capacity(&self) -> bool {
        let counts = [&self.tasks, &self.long_lived].into_iter().map(|tasks| {
            let mut tasks = tasks.lock();
            while tasks.try_join_next().is_some() {}
            tasks.len()
        });
        counts.sum::<usize>() < self.server.config.limits.in_flight_requests
    }

    async fn respond(&self, id: &RequestId, outcome: Outcome) {
        self.send(outcome.into_chunks(id).to_line()).await;
    }

    async fn send(&self, message: Bytes) {
        // The client may have disconnected.
        let _ = self.out.send(message).await;
    }
}
